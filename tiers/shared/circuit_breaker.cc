#include "tiers/shared/circuit_breaker.h"

#include <algorithm>

namespace pando {

bool CircuitBreaker::Admits(absl::Time now) const {
  absl::MutexLock hold(&mutex_);
  return now >= refused_until_;
}

void CircuitBreaker::Succeeded() {
  absl::MutexLock hold(&mutex_);
  failures_ = 0;
  pause_ = kFirstPause;
  refused_until_ = absl::InfinitePast();
}

void CircuitBreaker::Failed(absl::Time now) {
  absl::MutexLock hold(&mutex_);
  failures_ = std::min(failures_ + 1, kFailures);
  if (failures_ < kFailures) return;
  refused_until_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

bool CircuitBreaker::is_open() const {
  absl::MutexLock hold(&mutex_);
  return failures_ == kFailures;
}

}  // namespace pando
