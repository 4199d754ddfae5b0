#ifndef PANDO_CORE_SESSIONS_QUARANTINE_H_
#define PANDO_CORE_SESSIONS_QUARANTINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/blocks/block_holds.h"
#include "core/sessions/writers.h"

namespace pando {

// The quarantine: pages and blocks that lost sessions had reserved, and blocks
// that they had locked, while their writers may still be using them. While a
// writer is known to live, no other session gets these pages and blocks,
// however long that takes. The time limit applies only to writers that cannot
// be watched.
//
// Owned by SessionHoldings; not thread-safe.
class Quarantine {
 public:
  // The quarantined pages and blocks of one lost session.
  struct Batch {
    SessionId owner;
    SessionNumber number;
    std::string client_name;
    Writers writers;
    absl::Time since;
    absl::Time until;  // time limit, for the writers that are not watched
    std::vector<PageId> pages;
    std::unique_ptr<BlockOwner> blocks;  // never null

    // Whether a writer is known to live, so that no time limit frees the pages.
    bool is_held() const { return !writers.living().empty(); }
  };

  // Some pages taken out of a batch.
  struct Part {
    std::vector<PageId> pages;
    std::unique_ptr<BlockOwner> blocks;  // set with the last pages, else null
    // The session that owned the batch, if these are its last pages; else
    // unset.
    std::optional<SessionId> owner;
  };

  // Puts a batch into quarantine. REQUIRES: no other batch has its session
  // number.
  void Add(Batch batch);
  // Notes that the writer is gone. TakeReleasable then returns the batches that
  // this makes safe.
  void Remove(WriterId writer);
  // Takes out the batches that are safe to free: all watched writers are gone,
  // and the time for the others has passed by `now`.
  std::vector<Batch> TakeReleasable(absl::Time now);
  // Takes out the batches of a session, even if a writer lives.
  std::vector<Batch> TakeBatchesOf(SessionId owner);
  // Takes out at most `most` pages of a session, even if a writer lives.
  Part TakePages(SessionNumber owner, size_t most);

  // The batch with the next higher session number; null if there is none.
  const Batch* BatchAfter(SessionNumber number) const;
  uint32_t batch_count() const {
    return static_cast<uint32_t>(batches_.size());
  }
  struct BlockCounts {
    uint64_t locked = 0;  // blocks; each counts once for each lock
    uint64_t reserved = 0;
  };
  // The sums over all batches. Held pages are those of batches that are held.
  BlockCounts block_counts() const;
  uint32_t page_count() const;
  uint32_t held_page_count() const;

 private:
  std::vector<Batch>::const_iterator After(SessionNumber number) const;
  template <typename Predicate>
  std::vector<Batch> TakeIf(Predicate&& matches);

  std::vector<Batch> batches_;  // in the order of their session numbers
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_QUARANTINE_H_
