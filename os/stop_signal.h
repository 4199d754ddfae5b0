#ifndef PANDO_OS_STOP_SIGNAL_H_
#define PANDO_OS_STOP_SIGNAL_H_

#include <condition_variable>
#include <mutex>

#include "absl/time/time.h"

namespace pando {

// Stops a thread that works periodically: the thread waits here between two
// rounds of its work. Unlike Abseil's waits, this one does not use the wall
// clock: if that is set back by an hour, their timeouts last an hour longer.
// Thread-safe.
class StopSignal {
 public:
  // Ends the waits that are under way, and all later ones at once.
  void Notify() {
    const std::lock_guard hold(mutex_);
    is_notified_ = true;
    changed_.notify_all();
  }

  bool is_notified() {
    const std::lock_guard hold(mutex_);
    return is_notified_;
  }

  // Waits until Notify is called or the time has passed. Returns whether Notify
  // was called.
  bool WaitFor(absl::Duration time) {
    std::unique_lock hold(mutex_);
    return changed_.wait_for(hold, absl::ToChronoNanoseconds(time),
                             [this] { return is_notified_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_notified_ = false;
};

}  // namespace pando

#endif  // PANDO_OS_STOP_SIGNAL_H_
