#ifndef PANDO_TIERS_SHARED_CIRCUIT_BREAKER_H_
#define PANDO_TIERS_SHARED_CIRCUIT_BREAKER_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace pando {

// Stops calls of something that keeps failing. After kFailures failures in a
// row it refuses calls for kFirstPause, then admits them again. Each further
// failure doubles the pause, up to kLongestPause; a success resets it. Owned by
// those who call a shared store; thread-safe.
class CircuitBreaker {
 public:
  static constexpr int kFailures = 3;
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Seconds(30);

  // Returns whether a call may be tried. `now` is of MonotonicNow, here and
  // below.
  bool Admits(absl::Time now) const;
  void Succeeded();
  void Failed(absl::Time now);
  // Returns whether there were kFailures failures since the last success.
  bool is_open() const;

 private:
  mutable absl::Mutex mutex_;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row, at most kFailures
  absl::Duration pause_ ABSL_GUARDED_BY(mutex_) = kFirstPause;
  absl::Time refused_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_CIRCUIT_BREAKER_H_
