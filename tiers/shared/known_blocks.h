#ifndef PANDO_TIERS_SHARED_KNOWN_BLOCKS_H_
#define PANDO_TIERS_SHARED_KNOWN_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/nodes/page_hash.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// The blocks that this process has stored or touched in the present period, so
// that it need not ask the store for them again. All blocks of a period count
// as used at its beginning. So the front of a prompt, which is touched only
// once, never looks older than blocks that are stored behind it later. Owned by
// RemoteBlocks; thread-safe.
class KnownBlocks {
 public:
  static constexpr absl::Duration kPeriod = absl::Minutes(10);

  // Returns whether the period that began last is over.
  bool IsPeriodOver() const;
  // Begins the present period, if it has not begun yet, and forgets the blocks
  // of the one before. Also forgets all blocks when it knows too many.
  void BeginPeriod();
  // When the last period began, by the system's clock.
  absl::Time period() const;

  // Returns how many blocks at the front of `run` are known.
  size_t CountKnown(std::span<const PageHash> run) const;
  // Returns the keys of the pages of a prompt from index `begin` on that are
  // not known.
  std::vector<BlockKey> UnknownOf(uint64_t ns_digest,
                                  std::span<const PageHash> prompt,
                                  size_t begin) const;
  // Adds blocks, unless Forget was called since generation() returned
  // `generation`.
  void Add(std::span<const PageHash> hashes, uint64_t generation);
  // Removes blocks that the store does not have, or may not have.
  void Remove(std::span<const PageHash> hashes);

  // Forgets all blocks.
  void Forget();
  // Counts the calls of Forget.
  uint64_t generation() const;

 private:
  static absl::Time PresentPeriod();

  mutable absl::Mutex mutex_;
  absl::flat_hash_set<PageHash> hashes_ ABSL_GUARDED_BY(mutex_);
  absl::Time period_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_KNOWN_BLOCKS_H_
