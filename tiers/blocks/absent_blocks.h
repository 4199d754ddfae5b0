#ifndef PANDO_TIERS_BLOCKS_ABSENT_BLOCKS_H_
#define PANDO_TIERS_BLOCKS_ABSENT_BLOCKS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tiers/blocks/block_name.h"

namespace pando {

// The blocks that a shared store lacked a moment ago. A call that asks for one
// of them again learns at once that there is nothing to wait for. Each is
// forgotten after kFor to twice that, or earlier when there are many. Owned by
// SharedBlocks; thread-safe.
class AbsentBlocks {
 public:
  static constexpr absl::Duration kFor = absl::Seconds(1);
  // It knows at most twice as many.
  static constexpr size_t kMost = size_t{32} * 1024;

  AbsentBlocks();

  void Add(std::span<const BlockName> names);
  // Returns, for each name, whether it was added lately.
  std::vector<bool> Have(std::span<const BlockName> names) const;

 private:
  // Blocks that were added since a time.
  struct Batch {
    absl::flat_hash_set<BlockName> names;
    absl::Time since = absl::InfinitePast();
  };

  // Begins a batch if the newer one is old or full.
  void BeginBatch();

  mutable absl::Mutex mutex_;
  Batch newer_ ABSL_GUARDED_BY(mutex_);
  Batch older_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_ABSENT_BLOCKS_H_
