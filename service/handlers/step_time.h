#ifndef PANDO_SERVICE_HANDLERS_STEP_TIME_H_
#define PANDO_SERVICE_HANDLERS_STEP_TIME_H_

#include <cstdint>

#include "os/monotonic_clock.h"

namespace pando {

// The time that one step of a handler may take before it gives the turn back:
// 100 us from the construction on. The handler does parts of its work one after
// the other until is_over().
class StepTime {
 public:
  bool is_over() const { return MonotonicNanoseconds() >= end_; }

 private:
  static constexpr int64_t kNanoseconds = 100'000;

  const int64_t end_ = MonotonicNanoseconds() + kNanoseconds;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_STEP_TIME_H_
