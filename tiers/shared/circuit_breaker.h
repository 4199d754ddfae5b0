#ifndef PANDO_TIERS_SHARED_CIRCUIT_BREAKER_H_
#define PANDO_TIERS_SHARED_CIRCUIT_BREAKER_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace pando {

// Leaves something alone that fails again and again: after some failures in a
// row, calls are refused for a while, then tried again. Each failure after that
// doubles the while. Owned by RemoteLoads and RemoteStores; thread-safe.
class CircuitBreaker {
 public:
  static constexpr int kFailures = 3;
  static constexpr absl::Duration kFirstPause = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Seconds(30);

  // Whether a call may be tried.
  bool Admits(absl::Time now) const;
  void Succeeded();
  void Failed(absl::Time now);
  // From the last of these failures until a call succeeds.
  bool is_open() const;

 private:
  mutable absl::Mutex mutex_;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;  // in a row, at most kFailures
  absl::Duration pause_ ABSL_GUARDED_BY(mutex_) = kFirstPause;
  absl::Time refused_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_CIRCUIT_BREAKER_H_
