#ifndef PANDO_SERVICE_RPC_WAKEUP_H_
#define PANDO_SERVICE_RPC_WAKEUP_H_

#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "service/rpc/event.h"

namespace pando {

// Runs an action on the polling thread, soon after any thread has requested it,
// and never inside another handler. A second request before the action has
// begun changes nothing. Owned by RpcServer, which opens and closes it;
// thread-safe.
class Wakeup final : public Event {
 public:
  explicit Wakeup(std::function<void()> action) : action_(std::move(action)) {}

  // Has no effect before the server starts and once it stops.
  void Request();

  void Open(grpc::CompletionQueue* queue);
  // Nothing is started on the queue after this.
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

#endif  // PANDO_SERVICE_RPC_WAKEUP_H_
