#ifndef PANDO_SERVICE_MONOTONIC_CLOCK_H_
#define PANDO_SERVICE_MONOTONIC_CLOCK_H_

#include <chrono>

#include "absl/time/time.h"

namespace pando {

// Time that only goes forward, whatever is done to the system's clock; its zero
// means nothing. For deadlines.
inline absl::Time MonotonicNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace pando

#endif  // PANDO_SERVICE_MONOTONIC_CLOCK_H_
