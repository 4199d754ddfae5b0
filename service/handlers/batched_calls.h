#ifndef PANDO_SERVICE_HANDLERS_BATCHED_CALLS_H_
#define PANDO_SERVICE_HANDLERS_BATCHED_CALLS_H_

#include <memory>
#include <vector>

#include "pando/v1/data_path.pb.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/calls/waiting_call.h"
#include "service/handlers/data_path.h"

namespace pando {

// How the calls in batches are counted: like those that come by themselves. By
// their places in a oneof.
struct BatchMetrics {
  explicit BatchMetrics(RpcMetrics& metrics, const DataPath& data_path);

  std::vector<MethodMetrics> by_number;  // 0 is no method
};

// One of the calls in a batch.
class BatchedCall {
 public:
  virtual ~BatchedCall() = default;
  virtual void Start() = 0;
  virtual bool IsAnswered() const = 0;
  // The caller is gone: it is answered now.
  virtual void End() = 0;
};

// The calls of one batch, as the service carries them out: each with an answer
// of its own, which is the same as if it had come by itself. Used in the turn.
class BatchedCalls {
 public:
  // All outlive this. `batch` is resumed once, if it waits, when the last call
  // was answered.
  BatchedCalls(CallPolicy* policy, const DataPath& data_path,
               const BatchMetrics& metrics, const v1::BatchRequest& request,
               v1::BatchResponse& response, WaitingCall& batch);

  // Begins all of them, in order. True: all are answered.
  bool Start();
  // Answers those that wait: the caller is gone.
  void End();

  // For a call: it was answered.
  void Answered();

 private:
  WaitingCall& batch_;
  std::vector<std::unique_ptr<BatchedCall>> calls_;
  size_t unanswered_;
  bool waits_ = false;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_BATCHED_CALLS_H_
