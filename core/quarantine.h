#ifndef PANDO_CORE_QUARANTINE_H_
#define PANDO_CORE_QUARANTINE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "core/ids.h"

namespace pando {

// Reserved pages of lost sessions, whose processes may still be writing to
// them. They wait until the process is known to be gone or a time has passed.
// Owned by PrefixCache; not thread-safe.
class Quarantine {
 public:
  void Add(SessionId owner, std::vector<PageId> pages, absl::Time until);
  // Takes out what has waited until `now`.
  std::vector<PageId> TakeExpired(absl::Time now);
  // Takes out what belonged to `owner`, whose process is gone.
  std::vector<PageId> TakeOf(SessionId owner);

  uint32_t page_count() const;

 private:
  struct Batch {
    SessionId owner;
    absl::Time until;
    std::vector<PageId> pages;
  };

  template <typename Predicate>
  std::vector<PageId> TakeIf(Predicate&& matches);

  std::vector<Batch> batches_;  // one for each lost session: few
};

}  // namespace pando

#endif  // PANDO_CORE_QUARANTINE_H_
