#ifndef PANDO_TIERS_BLOCKS_BLOCK_TIER_FIGURES_H_
#define PANDO_TIERS_BLOCKS_BLOCK_TIER_FIGURES_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace pando {

// Counters of a block tier's threads, from the start of the process.
struct BlockTierCounts {
  std::atomic<uint64_t> stored_blocks = 0;
  std::atomic<uint64_t> stored_bytes = 0;
  std::atomic<uint64_t> loaded_blocks = 0;
  std::atomic<uint64_t> loaded_bytes = 0;
  std::atomic<uint64_t> dropped_blocks = 0;
  std::atomic<uint64_t> failed_reads = 0;
  std::atomic<uint64_t> failed_writes = 0;
  std::atomic<uint64_t> damaged_blocks = 0;
};

// The figures of a tier of blocks, for the metrics; all 0 where there is none.
struct BlockTierFigures {
  uint64_t capacity_bytes = 0;
  uint64_t held_bytes = 0;
  uint64_t held_blocks = 0;
  uint64_t index_bytes = 0;  // memory that the index takes
  uint64_t stored_blocks = 0;
  uint64_t stored_bytes = 0;
  uint64_t loaded_blocks = 0;
  uint64_t loaded_bytes = 0;
  // Blocks that were not stored, because the tier was too slow or because they
  // were evicted before their turn.
  uint64_t dropped_blocks = 0;
  uint64_t failed_reads = 0;
  uint64_t failed_writes = 0;
  // Blocks that were read and did not have the bytes that had been stored.
  uint64_t damaged_blocks = 0;
  // Whether loads, or stores, are not tried for a while because they keep
  // failing; only of a shared tier.
  bool are_loads_refused = false;
  bool are_stores_refused = false;
};

// Returns the figures that are counts.
inline BlockTierFigures FiguresOf(const BlockTierCounts& counts) {
  return {.stored_blocks = counts.stored_blocks,
          .stored_bytes = counts.stored_bytes,
          .loaded_blocks = counts.loaded_blocks,
          .loaded_bytes = counts.loaded_bytes,
          .dropped_blocks = counts.dropped_blocks,
          .failed_reads = counts.failed_reads,
          .failed_writes = counts.failed_writes,
          .damaged_blocks = counts.damaged_blocks};
}

// The figures of all tiers of blocks.
struct BlockTiersFigures {
  struct OfKind {
    KindNumber kind;
    uint64_t stored = 0;  // by all tiers together
    uint64_t loaded = 0;
  };

  BlockTierFigures disk;
  std::optional<BlockTierFigures> shared;  // none: there is no such tier
  std::vector<OfKind> kinds;               // in the order of their numbers
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_TIER_FIGURES_H_
