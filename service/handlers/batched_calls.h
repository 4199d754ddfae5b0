#ifndef PANDO_SERVICE_HANDLERS_BATCHED_CALLS_H_
#define PANDO_SERVICE_HANDLERS_BATCHED_CALLS_H_

#include <memory>
#include <optional>
#include <vector>

#include "pando/v1/data_path.pb.h"
#include "service/calls/call_policy.h"
#include "service/calls/method_metrics.h"
#include "service/calls/waiting_call.h"
#include "service/handlers/data_path.h"
#include "service/handlers/stepped_calls.h"

namespace pando {

// The metrics of calls in batches. Such a call counts like one that comes alone
// over gRPC.
struct BatchMetrics {
  explicit BatchMetrics(RpcMetrics& metrics, const DataPath& data_path);

  // Indexed by the field number of the call in BatchedRequest; none for a
  // number without a method.
  std::vector<std::optional<MethodMetrics>> by_number;
};

// One of the calls in a batch. Used in the turn.
class BatchedCall {
 public:
  virtual ~BatchedCall() = default;
  // Begins the call: it answers, waits, or has another step to take.
  virtual void Start() = 0;
  // Takes the next step of a call that has begun and reported it by KeepStep.
  virtual void TakeStep() = 0;
  virtual bool IsAnswered() const = 0;
  // Makes a waiting call answer now, because its caller is gone.
  virtual void End() = 0;
};

// Carries out the calls of one batch. Each call gets the answer that it would
// have got alone. They are carried out in order, some of them in each step, so
// that other callers are served in between. A call that takes several steps
// ends before the next one begins. Used in the turn.
class BatchedCalls final : public SteppedCalls::Work {
 public:
  // All arguments outlive this. When calls of the batch wait, `batch` is
  // resumed once the last of them is answered.
  BatchedCalls(CallPolicy* policy, const DataPath& data_path,
               const BatchMetrics& metrics, const v1::BatchRequest& request,
               v1::BatchResponse& response, WaitingCall& batch);
  // Makes the calls that still wait answer, because the caller is gone. Calls
  // that have not begun are dropped.
  ~BatchedCalls() override;

  // Carries out some of the calls.
  SteppedCalls::Progress Step() override;

  // A call of the batch calls KeepStep when it has another step to take, and
  // Answered when it is answered.
  void KeepStep(BatchedCall* call) { stepping_ = call; }
  void Answered();

 private:
  WaitingCall& batch_;
  std::vector<std::unique_ptr<BatchedCall>> calls_;
  size_t begun_ = 0;
  BatchedCall* stepping_ = nullptr;
  size_t unanswered_;
  bool waits_ = false;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_BATCHED_CALLS_H_
