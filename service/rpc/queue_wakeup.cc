#include "service/rpc/queue_wakeup.h"

#include <grpc/support/time.h>

#include <utility>

namespace pando {

void QueueWakeup::Request() {
  absl::MutexLock hold(&mutex_);
  if (queue_ == nullptr || std::exchange(is_requested_, true)) return;
  // The alarm is set to the past, because gRPC rounds "now" up to the next
  // millisecond.
  alarm_.Set(queue_, gpr_inf_past(GPR_CLOCK_MONOTONIC), this);
}

void QueueWakeup::Open(grpc::CompletionQueue* queue) {
  absl::MutexLock hold(&mutex_);
  queue_ = queue;
}

void QueueWakeup::Close() {
  absl::MutexLock hold(&mutex_);
  queue_ = nullptr;
}

void QueueWakeup::Run(bool) {
  {
    absl::MutexLock hold(&mutex_);
    is_requested_ = false;
    if (queue_ == nullptr) return;
  }
  action_();
}

}  // namespace pando
