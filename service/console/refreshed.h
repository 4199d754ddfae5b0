#ifndef PANDO_SERVICE_CONSOLE_REFRESHED_H_
#define PANDO_SERVICE_CONSOLE_REFRESHED_H_

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "os/monotonic_clock.h"

namespace pando {

// A value that is made anew when a caller asks for it and it is too old. The
// longer it takes to make, the less often it is made, however many callers ask.
// Thread-safe: a caller waits while another one makes the value.
template <typename T>
class Refreshed {
 public:
  explicit Refreshed(std::function<std::shared_ptr<const T>()> make)
      : make_(std::move(make)) {}

  // Returns the value; makes it first if it is too old.
  std::shared_ptr<const T> Get() {
    absl::MutexLock hold(&mutex_);
    const absl::Time begin = MonotonicNow();
    if (value_ == nullptr || begin >= due_) {
      value_ = make_();
      const absl::Time end = MonotonicNow();
      due_ = end + std::max(kShortest, kRestShare * (end - begin));
    }
    return value_;
  }

 private:
  static constexpr absl::Duration kShortest = absl::Milliseconds(400);
  // After each making, the value is kept for 19 times as long as that took, so
  // making it takes at most a twentieth of a CPU.
  static constexpr int kRestShare = 19;

  const std::function<std::shared_ptr<const T>()> make_;
  absl::Mutex mutex_;
  std::shared_ptr<const T> value_ ABSL_GUARDED_BY(mutex_);
  absl::Time due_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_REFRESHED_H_
