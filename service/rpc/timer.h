#ifndef PANDO_SERVICE_RPC_TIMER_H_
#define PANDO_SERVICE_RPC_TIMER_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "os/turn_actions.h"

namespace pando {

class Timers;

// A timer that the thread of Timers waits for. Owned by Timers; thread-safe.
class ThreadTimer final : public Timer {
 public:
  void SetPeriod(absl::Duration period) override;

 private:
  friend class Timers;
  using Clock = std::chrono::steady_clock;

  ThreadTimer(Timers* owner, absl::Duration period, Wakeup* wakeup)
      : owner_(owner), wakeup_(wakeup) {
    Set(period);
  }

  void Set(absl::Duration period);
  // Requests the wakeup if the timer is due. Returns when it is due next.
  Clock::time_point RequestIfDue(Clock::time_point now);

  Timers* const owner_;
  Wakeup* const wakeup_;
  // The owner's mutex guards these.
  absl::Duration period_;
  Clock::time_point due_;
};

// The timers of a server, and the thread that waits for them. gRPC's alarms are
// not used, because they wait by the wall clock (as Abseil's waits do): if that
// is set back by an hour, no alarm comes for an hour. Owned by RpcServer.
class Timers {
 public:
  ~Timers() { Stop(); }

  // Adds a timer that requests `wakeup` every `period`; zero: never. `wakeup`
  // outlives this. To be called before Start.
  Timer* Add(absl::Duration period, Wakeup* wakeup);
  void Start();
  // Ends the thread: no wakeup is requested after this. Idempotent.
  void Stop();

 private:
  friend class ThreadTimer;

  void Run();

  std::mutex mutex_;  // guards the timers and what follows
  std::condition_variable changed_;
  bool is_stopped_ = false;
  std::vector<std::unique_ptr<ThreadTimer>> timers_;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_TIMER_H_
