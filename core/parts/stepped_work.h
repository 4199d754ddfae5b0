#ifndef PANDO_CORE_PARTS_STEPPED_WORK_H_
#define PANDO_CORE_PARTS_STEPPED_WORK_H_

#include <optional>

#include "core/journal/measurements.h"
#include "core/nodes/step_sizes.h"
#include "core/parts/cache_parts.h"

namespace pando {

// Work that would take too long under one hold of the mutex. It is cut into
// steps, between which other calls run and may change the cache.
//
//   FlushWork flush;
//   while (!cache.Step(flush)) ServeOthers();
//   Answer(flush.result());
//
// The caller owns it, and may drop it before its end (see Abandon). One thread
// at a time uses it. A step takes some hundred microseconds, however much is
// cached.
class SteppedWork {
 public:
  virtual ~SteppedWork() = default;

  // PrefixCache calls this before each step, without the mutex. Work that takes
  // long and does not need the cache goes here.
  virtual void Prepare() {}

  // Does the next part. PrefixCache calls this with the mutex held. Returns
  // whether that was the last part; it is then not called again.
  virtual bool Step(CacheParts& parts) = 0;

  // Call this if the caller that asked for the work is gone, before the memory
  // that its request refers to goes. Returns whether more steps must be taken,
  // so that nothing is left half done: go on until Step returns true.
  virtual bool Abandon() { return false; }

  // The operation as which a step is measured; none: it is not measured.
  virtual std::optional<Operation> operation() const { return std::nullopt; }
};

}  // namespace pando

#endif  // PANDO_CORE_PARTS_STEPPED_WORK_H_
