#ifndef PANDO_CORE_QUARANTINE_H_
#define PANDO_CORE_QUARANTINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/writers.h"

namespace pando {

// The reserved pages of lost sessions, whose writers may still be writing to
// them. As long as one of these is known to be there nobody else gets the
// pages, however long that is. Only for writers that nobody watches a time ends
// the wait.
//
// Owned by SessionHoldings; not thread-safe.
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

  // Some pages of a batch.
  struct Part {
    std::vector<PageId> pages;
    // That these pages were the last of; none: others are left, or there was no
    // batch.
    std::optional<SessionId> owner;
  };

  // REQUIRES: no other batch has its session number.
  void Add(Batch batch);
  // The writer is gone.
  void Remove(WriterId writer);
  // Takes out what nobody writes to any more, as far as is known at `now`.
  std::vector<Batch> TakeFree(absl::Time now);
  // Takes out what belonged to a session, whatever is known of its processes.
  std::vector<Batch> TakeOf(SessionId owner);
  // Takes out a part of that: at most `most` pages of a session.
  Part TakePart(SessionNumber owner, size_t most);

  // The one with the next higher session number; null: there is none.
  const Batch* BatchAfter(SessionNumber number) const;
  uint32_t batch_count() const {
    return static_cast<uint32_t>(batches_.size());
  }
  uint32_t page_count() const;
  uint32_t held_page_count() const;

 private:
  std::vector<Batch>::const_iterator After(SessionNumber number) const;
  template <typename Predicate>
  std::vector<Batch> TakeIf(Predicate&& matches);

  std::vector<Batch> batches_;  // in the order of their session numbers
};

}  // namespace pando

#endif  // PANDO_CORE_QUARANTINE_H_
