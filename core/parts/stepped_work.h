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
// Owned by the caller, who may drop it before its end; used by one thread at a
// time. A step takes some hundred microseconds, whatever is cached.
class SteppedWork {
 public:
  virtual ~SteppedWork() = default;

  // Called before each step, without the mutex: for what takes long and needs
  // nothing of the cache.
  virtual void Prepare() {}

  // Does the next part; PrefixCache calls it with the mutex held. Returns
  // whether that was the last part; it is not called again then.
  virtual bool Step(CacheParts& parts) = 0;

  // Who asked for the work is gone, and what the request refers to is about to
  // go. Returns whether there are steps to take nevertheless, so that nothing
  // is left half done; the work ends soon then.
  virtual bool Abandon() { return false; }

  // The operation that a step is measured as; none: it is not measured.
  virtual std::optional<Operation> operation() const { return std::nullopt; }
};

}  // namespace pando

#endif  // PANDO_CORE_PARTS_STEPPED_WORK_H_
