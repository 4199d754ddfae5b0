#ifndef PANDO_CORE_QUARANTINE_H_
#define PANDO_CORE_QUARANTINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/writers.h"

namespace pando {

// Reserved pages of lost sessions, whose writers may still be writing to them.
// As long as one of these is known to be there the pages wait, however long
// that is. A time ends the wait only for writers that nobody watches. Owned by
// PrefixCache; not thread-safe.
class Quarantine {
 public:
  // The pages of one lost session.
  struct Batch {
    SessionId owner;
    SessionNumber number;
    std::string client_name;
    Writers writers;
    absl::Time since;
    absl::Time until;  // of those writers that are not watched
    std::vector<PageId> pages;

    // A writer is known to be there, and no time frees the pages.
    bool is_held() const { return !writers.living().empty(); }
  };

  void Add(Batch batch) { batches_.push_back(std::move(batch)); }
  // The writer is gone.
  void Remove(WriterId writer);
  // Takes out what nobody writes to any more, as far as is known at `now`.
  std::vector<Batch> TakeFree(absl::Time now);
  // Takes out what belonged to a session, whatever is known of its processes.
  std::vector<Batch> TakeOf(SessionId owner);
  std::vector<Batch> TakeOf(SessionNumber owner);

  // The longest in quarantine first.
  const std::vector<Batch>& batches() const { return batches_; }
  uint32_t page_count() const;
  uint32_t held_page_count() const;

 private:
  template <typename Predicate>
  std::vector<Batch> TakeIf(Predicate&& matches);

  std::vector<Batch> batches_;  // few: one for each lost session
};

}  // namespace pando

#endif  // PANDO_CORE_QUARANTINE_H_
