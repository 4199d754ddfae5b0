#ifndef PANDO_TIERS_TIER_FIGURES_H_
#define PANDO_TIERS_TIER_FIGURES_H_

#include <cstdint>

namespace pando {

// The figures of a tier, for the metrics. They are all 0 where there is no disk
// tier. All numbers after the first three count from the start of the process.
struct TierFigures {
  // These two are 0 for a shared store, which does not tell them.
  uint64_t capacity_pages = 0;
  uint64_t held_pages = 0;
  uint64_t page_bytes = 0;
  uint64_t stored_pages = 0;
  uint64_t loaded_pages = 0;
  // Pages that were not stored, because the tier was too slow or because they
  // were evicted before their turn.
  uint64_t dropped_pages = 0;
  // Reads and writes that failed, or took too long.
  uint64_t failed_reads = 0;
  uint64_t failed_writes = 0;
  // Blocks that were read and did not have the bytes that had been stored.
  uint64_t damaged_pages = 0;
  // Whether loads, or stores, are not tried for a while because they failed
  // repeatedly.
  bool are_loads_refused = false;
  bool are_stores_refused = false;
};

}  // namespace pando

#endif  // PANDO_TIERS_TIER_FIGURES_H_
