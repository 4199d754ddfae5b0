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

// Blocks that this process stored or touched in the present period, so that a
// store is not asked for each of them again. All of a period count as used at
// its beginning, so that the front of a prompt, which is touched once, is never
// older than what is stored behind it later. Owned by RemoteBlocks;
// thread-safe.
class KnownBlocks {
 public:
  static constexpr absl::Duration kPeriod = absl::Minutes(10);

  // Whether BeginPeriod would begin another one.
  bool IsPeriodOver() const;
  // Forgets the blocks of an earlier period.
  void BeginPeriod();
  // When the present one began, by the system's clock.
  absl::Time period() const;

  // How many blocks at the front of `run` are known.
  size_t CountKnown(std::span<const PageHash> run) const;
  // Those of the pages `begin` and following of a prompt that are not.
  std::vector<BlockKey> UnknownOf(uint64_t ns_digest,
                                  std::span<const PageHash> prompt,
                                  size_t begin) const;
  // Findings from before the last Forget are not added.
  void Add(std::span<const PageHash> hashes, uint64_t generation);
  // They are not there, or may not be.
  void Remove(std::span<const PageHash> hashes);

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
