#ifndef PANDO_SERVICE_RPC_QUEUE_WAKEUP_H_
#define PANDO_SERVICE_RPC_QUEUE_WAKEUP_H_

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "os/turn_actions.h"
#include "service/rpc/event.h"

namespace pando {

// A wakeup whose action runs on the polling thread. Owned by RpcServer, which
// opens and closes it; thread-safe.
class QueueWakeup final : public Event, public Wakeup {
 public:
  explicit QueueWakeup(std::function<void()> action)
      : action_(std::move(action)) {}

  void Request() override;

  // Requests have an effect from now on.
  void Open(grpc::CompletionQueue* queue);
  // Requests have no effect any more: nothing is started on the queue after
  // this.
  void Close();
  void Run(bool ok) override;

 private:
  const std::function<void()> action_;
  absl::Mutex mutex_;
  grpc::CompletionQueue* queue_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_requested_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_QUEUE_WAKEUP_H_
