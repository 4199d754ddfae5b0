#ifndef PANDO_TIERS_TIER_FIGURES_H_
#define PANDO_TIERS_TIER_FIGURES_H_

#include <cstdint>

namespace pando {

// The figures of a tier, for the metrics; all 0 where there is no disk tier.
// The numbers but for the first three count up from the start of the process.
struct TierFigures {
  // Not known of a shared store.
  uint64_t capacity_pages = 0;
  uint64_t held_pages = 0;
  uint64_t page_bytes = 0;
  uint64_t stored_pages = 0;
  uint64_t loaded_pages = 0;
  // Not stored: the tier was too slow, or they were evicted before their turn.
  uint64_t dropped_pages = 0;
  // Reads and writes that failed, or took too long.
  uint64_t failed_reads = 0;
  uint64_t failed_writes = 0;
  // Blocks whose bytes were not those that had been stored.
  uint64_t damaged_pages = 0;
  // Nothing is tried in this direction for a while, as it failed repeatedly.
  bool are_loads_refused = false;
  bool are_stores_refused = false;
};

}  // namespace pando

#endif  // PANDO_TIERS_TIER_FIGURES_H_
