#ifndef PANDO_SERVICE_LANE_LANE_FIGURES_H_
#define PANDO_SERVICE_LANE_LANE_FIGURES_H_

#include <cstdint>

namespace pando {

// Counts of all lanes.
struct LaneFigures {
  uint32_t open = 0;
  // How often the thread of the lanes spun for the next call.
  uint64_t spins_with_call = 0;     // and a call came
  uint64_t spins_without_call = 0;  // and none came: it went to sleep
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_LANE_FIGURES_H_
