#include "service/rpc/timer.h"

#include "absl/time/clock.h"

namespace pando {

// An alarm can only be set again when it has run, cancelled or not.
void Timer::SetPeriod(absl::Duration period) {
  if (period == period_) return;
  period_ = period;
  if (is_set_) {
    alarm_.Cancel();
  } else {
    Set();
  }
}

void Timer::Open(grpc::CompletionQueue* queue) {
  queue_ = queue;
  Set();
}

void Timer::Close() {
  queue_ = nullptr;
  alarm_.Cancel();
}

void Timer::Run(bool ok) {
  is_set_ = false;
  if (ok && queue_ != nullptr) action_();
  Set();
}

void Timer::Set() {
  if (queue_ == nullptr || period_ == absl::ZeroDuration()) return;
  is_set_ = true;
  alarm_.Set(queue_, absl::ToChronoTime(absl::Now() + period_), this);
}

}  // namespace pando
