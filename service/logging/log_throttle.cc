#include "service/logging/log_throttle.h"

#include <utility>

namespace pando {

std::optional<uint64_t> LogThrottle::Admit(absl::string_view words,
                                           absl::Time now) {
  absl::MutexLock hold(&mutex_);
  Repeats& repeats = repeats_[words];
  // A clock that was set back begins a new second, too.
  if (absl::AbsDuration(now - repeats.second) >= absl::Seconds(1)) {
    repeats.second = now;
    repeats.admitted = 0;
  }
  if (repeats.admitted == kPerSecond) {
    ++repeats.kept_out;
    return std::nullopt;
  }
  ++repeats.admitted;
  return std::exchange(repeats.kept_out, 0);
}

}  // namespace pando
