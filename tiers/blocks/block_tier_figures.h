#ifndef PANDO_TIERS_BLOCKS_BLOCK_TIER_FIGURES_H_
#define PANDO_TIERS_BLOCKS_BLOCK_TIER_FIGURES_H_

#include <atomic>
#include <cstdint>
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

// The figures of a block tier, for the metrics; all 0 where there is none.
struct BlockTierFigures {
  struct OfKind {
    KindNumber kind;
    uint64_t stored = 0;
    uint64_t loaded = 0;
  };

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
  std::vector<OfKind> kinds;  // in the order of their numbers
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_TIER_FIGURES_H_
