#ifndef PANDO_TIERS_BLOCKS_SHARED_SOURCE_H_
#define PANDO_TIERS_BLOCKS_SHARED_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "tiers/blocks/block_source.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/shared_blocks.h"
#include "tiers/shared/block_window.h"
#include "tiers/shared/circuit_breaker.h"
#include "tiers/shared/deadline_threads.h"

namespace pando {

// Reads blocks from a shared store, several at the same time, under a time
// limit. A damaged block is erased there. Owned by SharedBlockTier, and used by
// the thread of its loads; MayRead and is_refused are thread-safe.
class SharedSource final : public BlockSource {
 public:
  // The pointers must outlive this object. `timeout` limits one Read.
  SharedSource(SharedBlocks* shared, BlockTierCounts* counts,
               absl::Duration timeout)
      : shared_(shared),
        counts_(counts),
        timeout_(timeout),
        getters_(SharedBlocks::kCopyThreads) {}

  size_t most_at_once() const override { return 256; }
  uint64_t ValueBytes(const TierKind& kind) const override {
    return kind.block_bytes;
  }
  void Read(const std::shared_ptr<KnownKind>& kind,
            std::span<BlockRead> blocks) override;

  // Returns whether blocks of a kind may be read now.
  bool MayRead(const KnownKind& kind) const;
  // Returns whether reads keep failing.
  bool is_refused() const { return breaker_.is_open(); }

 private:
  // Blocks that are read together. The threads own it together with the caller,
  // because they may go on after the caller has given up the wait.
  struct Job {
    Job(std::shared_ptr<KnownKind> of, size_t bytes, absl::Time until)
        : kind(std::move(of)), window(bytes), deadline(until) {}

    const std::shared_ptr<KnownKind> kind;
    std::vector<std::string> keys;
    BlockWindow window;
    const absl::Time deadline;
  };

  // Gets parts of the window until none is left, verifies the blocks, and
  // copies them to `blocks`, which belong to the caller and are not used once
  // the window is closed.
  void GetParts(Job& job, std::span<BlockRead> blocks);
  // Counts and logs the blocks that were not read.
  void CountFailures(std::span<const BlockRead> blocks);

  SharedBlocks* const shared_;
  BlockTierCounts* const counts_;
  const absl::Duration timeout_;
  CircuitBreaker breaker_;
  DeadlineThreads getters_;  // its threads use all members above
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_SOURCE_H_
