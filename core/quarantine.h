#ifndef PANDO_CORE_QUARANTINE_H_
#define PANDO_CORE_QUARANTINE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"

namespace pando {

// The reserved pages of lost sessions. The kernels of such a session's process
// may still be writing to them, so nobody else gets them until the process is
// known to be gone, or a time has passed.
//
// Owned by SessionHoldings; not thread-safe.
class Quarantine {
 public:
  // The pages of one lost session.
  struct Batch {
    SessionId owner;
    absl::Time until;
    std::vector<PageId> pages;
  };

  void Add(SessionId owner, std::vector<PageId> pages, absl::Time until);
  // Takes out what has waited until `now`.
  std::vector<Batch> TakeExpired(absl::Time now);
  // Takes out what belonged to `owner`, whose process is gone.
  std::vector<Batch> TakeOf(SessionId owner);

  uint32_t page_count() const;

 private:
  template <typename Predicate>
  std::vector<Batch> TakeIf(Predicate&& matches);

  std::vector<Batch> batches_;  // few: one for each lost session
};

}  // namespace pando

#endif  // PANDO_CORE_QUARANTINE_H_
