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

// The metrics of calls in batches, which count like calls that come alone.
// Indexed by the field number of the call in BatchedRequest.
struct BatchMetrics {
  explicit BatchMetrics(RpcMetrics& metrics, const DataPath& data_path);

  std::vector<std::optional<MethodMetrics>> by_number;
};

// One of the calls in a batch.
class BatchedCall {
 public:
  virtual ~BatchedCall() = default;
  virtual void Start() = 0;
  // Takes the next step of one that has begun.
  virtual void TakeStep() = 0;
  virtual bool IsAnswered() const = 0;
  // Answers the call now, because its caller is gone.
  virtual void End() = 0;
};

// Carries out the calls of one batch. Each gets the answer that it would have
// got alone. They are carried out in order, some in each step, so that others
// are served between them; one that takes steps ends before the next begins.
// Used in the turn.
class BatchedCalls final : public SteppedCalls::Work {
 public:
  // All outlive this. `batch` is resumed when the last call was answered that
  // waits.
  BatchedCalls(CallPolicy* policy, const DataPath& data_path,
               const BatchMetrics& metrics, const v1::BatchRequest& request,
               v1::BatchResponse& response, WaitingCall& batch);
  // Answers the calls that wait, if the caller is gone. Those that have not
  // begun never do.
  ~BatchedCalls() override;

  // Carries out some of the calls.
  SteppedCalls::Progress Step() override;

  // A call of the batch reports here that it has a step to take, and that it
  // was answered.
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
