#ifndef PANDO_SERVICE_RPC_TIMER_H_
#define PANDO_SERVICE_RPC_TIMER_H_

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "service/rpc/event.h"

namespace pando {

// Runs an action on the polling thread again and again. Owned by RpcServer,
// which opens and closes it; used before the server starts, then on the polling
// thread alone.
class Timer final : public Event {
 public:
  Timer(absl::Duration period, std::function<void()> action)
      : period_(period), action_(std::move(action)) {}

  // What passes between two runs, from now on; zero: it does not run.
  void SetPeriod(absl::Duration period);

  void Open(grpc::CompletionQueue* queue);
  // Nothing is started on the queue after this.
  void Close();
  void Run(bool ok) override;

 private:
  void Set();

  absl::Duration period_;
  const std::function<void()> action_;
  grpc::CompletionQueue* queue_ = nullptr;
  bool is_set_ = false;
  grpc::Alarm alarm_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_TIMER_H_
