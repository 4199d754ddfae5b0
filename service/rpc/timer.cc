#include "service/rpc/timer.h"

#include <pthread.h>

#include <algorithm>

namespace pando {

void ThreadTimer::SetPeriod(absl::Duration period) {
  const std::lock_guard hold(owner_->mutex_);
  if (period == period_) return;
  Set(period);
  owner_->changed_.notify_one();
}

void ThreadTimer::Set(absl::Duration period) {
  period_ = period;
  due_ = period == absl::ZeroDuration()
             ? Clock::time_point::max()
             : Clock::now() + absl::ToChronoNanoseconds(period);
}

ThreadTimer::Clock::time_point ThreadTimer::RequestIfDue(
    Clock::time_point now) {
  if (due_ <= now) {
    wakeup_->Request();
    Set(period_);
  }
  return due_;
}

Timer* Timers::Add(absl::Duration period, Wakeup* wakeup) {
  timers_.push_back(
      std::unique_ptr<ThreadTimer>(new ThreadTimer(this, period, wakeup)));
  return timers_.back().get();
}

void Timers::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Timers::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard hold(mutex_);
    is_stopped_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

void Timers::Run() {
  pthread_setname_np(pthread_self(), "timers");
  std::unique_lock hold(mutex_);
  while (!is_stopped_) {
    const ThreadTimer::Clock::time_point now = ThreadTimer::Clock::now();
    ThreadTimer::Clock::time_point next = ThreadTimer::Clock::time_point::max();
    for (const auto& timer : timers_)
      next = std::min(next, timer->RequestIfDue(now));
    changed_.wait_until(hold, next);
  }
}

}  // namespace pando
