#include "os/logging/log_throttle.h"

#include <utility>

namespace pando {

std::optional<uint64_t> LogThrottle::Admit(LogLevel level,
                                           absl::string_view words,
                                           absl::Time now) {
  absl::MutexLock hold(&mutex_);
  Repeats& repeats = repeats_[words];
  repeats.level = level;
  if (repeats.IsOver(now)) {
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

std::vector<LogThrottle::KeptOut> LogThrottle::TakeKeptOut(absl::Time now) {
  std::vector<KeptOut> taken;
  absl::MutexLock hold(&mutex_);
  for (auto& [words, repeats] : repeats_) {
    if (repeats.kept_out == 0 || !repeats.IsOver(now)) continue;
    taken.push_back({repeats.level, words, std::exchange(repeats.kept_out, 0)});
  }
  return taken;
}

}  // namespace pando
