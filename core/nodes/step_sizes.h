#ifndef PANDO_CORE_NODES_STEP_SIZES_H_
#define PANDO_CORE_NODES_STEP_SIZES_H_

#include <cstdint>

namespace pando {

// How much one step of each kind of work does. A step should take some hundred
// microseconds even if the CPU's caches are cold.
inline constexpr uint32_t kStepEvictedPages = 256;
inline constexpr uint32_t kStepCells = 2'048;  // cells of nodes or locks
// Nodes put into a new order.
inline constexpr uint32_t kStepOrderedNodes = 512;
// Nodes described to the event log.
inline constexpr uint32_t kStepToldNodes = 1'024;
inline constexpr uint32_t kStepEntries = 1'000;
// Locks, plus nodes that they unlock.
inline constexpr uint32_t kStepReleases = 512;
inline constexpr uint32_t kStepFreedPages = 2'048;
inline constexpr uint32_t kStepReservedPages = 1'024;
inline constexpr uint32_t kStepInsertedPages = 4'096;

}  // namespace pando

#endif  // PANDO_CORE_NODES_STEP_SIZES_H_
