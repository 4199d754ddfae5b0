#ifndef PANDO_CORE_NODES_STEP_SIZES_H_
#define PANDO_CORE_NODES_STEP_SIZES_H_

#include <cstdint>

namespace pando {

// The size of one step of each kind of work, such that it takes some hundred
// microseconds even when nothing is in the CPU's caches.
inline constexpr uint32_t kStepEvictedPages = 256;
inline constexpr uint32_t kStepCells = 2'048;       // of nodes or locks
inline constexpr uint32_t kStepOrderedNodes = 512;  // of a new order
inline constexpr uint32_t kStepToldNodes = 1'024;   // that events tell of
inline constexpr uint32_t kStepEntries = 1'000;
inline constexpr uint32_t kStepReleases =
    512;  // of locks, and of nodes from locks
inline constexpr uint32_t kStepFreedPages = 2'048;
inline constexpr uint32_t kStepReservedPages = 1'024;
inline constexpr uint32_t kStepInsertedPages = 4'096;

}  // namespace pando

#endif  // PANDO_CORE_NODES_STEP_SIZES_H_
