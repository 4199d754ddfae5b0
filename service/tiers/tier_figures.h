#ifndef PANDO_SERVICE_TIERS_TIER_FIGURES_H_
#define PANDO_SERVICE_TIERS_TIER_FIGURES_H_

#include <cstdint>

namespace pando {

// The figures of the disk tier, for the metrics; all 0 where there is none. The
// first three are of now, all others count up from the start of the process.
struct TierFigures {
  uint64_t capacity_pages = 0;
  uint64_t held_pages = 0;
  uint64_t page_bytes = 0;
  uint64_t stored_pages = 0;
  uint64_t loaded_pages = 0;
  // Not stored: the tier was too slow, or they were evicted before their turn.
  uint64_t dropped_pages = 0;
  // Reads and writes that the system refused.
  uint64_t failed_reads = 0;
  uint64_t failed_writes = 0;
  // Blocks whose bytes were not those that had been stored.
  uint64_t damaged_pages = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_TIER_FIGURES_H_
