#ifndef PANDO_OS_MONOTONIC_CLOCK_H_
#define PANDO_OS_MONOTONIC_CLOCK_H_

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"

namespace pando {

// Both return the time of a clock that only goes forward, even if the system's
// clock is set back. Its zero has no meaning. For deadlines and measurements.
inline int64_t MonotonicNanoseconds() {
  return std::chrono::nanoseconds(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline absl::Time MonotonicNow() {
  return absl::FromUnixNanos(MonotonicNanoseconds());
}

}  // namespace pando

#endif  // PANDO_OS_MONOTONIC_CLOCK_H_
