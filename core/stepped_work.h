#ifndef PANDO_CORE_STEPPED_WORK_H_
#define PANDO_CORE_STEPPED_WORK_H_

#include <cstdint>
#include <optional>

#include "core/cache_parts.h"
#include "core/measurements.h"

namespace pando {

// Work for operators that would take too long for one hold of the mutex: it is
// cut into steps, between which other calls come in and change the cache.
//
//   FlushWork flush;
//   while (!cache.Step(flush)) ServeOthers();
//   Answer(flush.result());
//
// Owned by the caller, who may drop it before its end; used by one thread at a
// time. A step takes some hundred microseconds, whatever is cached.
class SteppedWork {
 public:
  virtual ~SteppedWork() = default;

  // Does the next part, with the mutex held. Returns whether that was the last:
  // it is not called again then.
  virtual bool Step(CacheParts& parts) = 0;

  // What the time of a step is measured as; empty: it is not.
  virtual std::optional<Operation> operation() const { return std::nullopt; }
};

// How much one step does of what it does: so that each takes some hundred
// microseconds, even where nothing is in the CPU's caches.
inline constexpr uint32_t kStepEvictedPages = 256;
inline constexpr uint32_t kStepCells = 2'048;  // of nodes or locks
inline constexpr uint32_t kStepEntries = 1'000;
inline constexpr uint32_t kStepReleasedLocks = 64;
inline constexpr uint32_t kStepFreedPages = 2'048;

}  // namespace pando

#endif  // PANDO_CORE_STEPPED_WORK_H_
