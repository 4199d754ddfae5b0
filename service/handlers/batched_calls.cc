#include "service/handlers/batched_calls.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "base/methods.h"
#include "core/requests/errors.h"
#include "service/calls/served_call.h"
#include "service/calls/status_message.h"
#include "service/handlers/step_time.h"

namespace pando {
namespace {

// One call, whose messages are parts of those of the batch.
template <typename Request, typename Response>
class CallInBatch final : public ServedCall<Request, Response>,
                          public BatchedCall {
 public:
  CallInBatch(BatchedCalls* calls, CallPolicy* policy,
              MethodPointer<Request, Response> method, MethodMetrics metrics,
              const Request* request, Response* message,
              v1::BatchedResponse* response, WaitingCall& batch)
      : ServedCall<Request, Response>(policy, std::move(method), metrics,
                                      request, message),
        calls_(calls),
        response_(response),
        batch_(batch) {}

  Caller caller() const override { return batch_.caller(); }
  // The requests of a batch are counted together, until the last one is
  // answered.
  absl::Status Keep(PrefixCache& cache, SessionId session) override {
    return batch_.Keep(cache, session);
  }
  void Start() override { this->Begin(); }
  void TakeStep() override { this->Resume(); }
  bool IsAnswered() const override { return is_answered_; }
  void End() override { this->Cancel(); }

 private:
  bool OnStep() override {
    calls_->KeepStep(this);
    return true;
  }
  void Send(const absl::Status& status) override {
    is_answered_ = true;
    if (!status.ok()) *response_->mutable_error() = ToStatusMessage(status);
    calls_->Answered();  // may delete this
  }

  BatchedCalls* const calls_;
  v1::BatchedResponse* const response_;
  WaitingCall& batch_;
  bool is_answered_ = false;
};

// A call of a method that this server does not know.
class UnknownCall final : public BatchedCall {
 public:
  UnknownCall(BatchedCalls* calls, v1::BatchedResponse* response)
      : calls_(calls), response_(response) {}

  void Start() override {
    *response_->mutable_error() = ToStatusMessage(MakeError(
        Reason::kInvalidField, "request is not set, or not known here"));
    calls_->Answered();
  }
  void TakeStep() override {}
  bool IsAnswered() const override { return true; }
  void End() override {}

 private:
  BatchedCalls* const calls_;
  v1::BatchedResponse* const response_;
};

}  // namespace

BatchMetrics::BatchMetrics(RpcMetrics& metrics, const DataPath& data_path) {
  data_path.ForEach([&](lane::Method number, const auto& method) {
    const auto index = static_cast<size_t>(number);
    by_number.resize(std::max(by_number.size(), index + 1));
    by_number[index] = metrics.ForMethod(method->service, method->name);
  });
}

BatchedCalls::BatchedCalls(CallPolicy* policy, const DataPath& data_path,
                           const BatchMetrics& metrics,
                           const v1::BatchRequest& request,
                           v1::BatchResponse& response, WaitingCall& batch)
    : batch_(batch), unanswered_(static_cast<size_t>(request.requests_size())) {
  for (const v1::BatchedRequest& each : request.requests()) {
    v1::BatchedResponse* const answer = response.add_responses();
    const auto add = [&]<typename Request, typename Response>(
                         const MethodPointer<Request, Response>& method,
                         const Request& in, Response* out) {
      calls_.push_back(std::make_unique<CallInBatch<Request, Response>>(
          this, policy, method, *metrics.by_number[each.request_case()], &in,
          out, answer, batch));
    };
    switch (each.request_case()) {
#define PANDO_METHOD(number, field, service, name, role, kind)         \
  case v1::BatchedRequest::k##name:                                    \
    static_assert(number == v1::BatchedRequest::k##name##FieldNumber); \
    add(data_path.field, each.field(), answer->mutable_##field());     \
    break;
      PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
      case v1::BatchedRequest::REQUEST_NOT_SET:
        calls_.push_back(std::make_unique<UnknownCall>(this, answer));
        break;
    }
  }
}

BatchedCalls::~BatchedCalls() {
  waits_ = false;  // the batch is not resumed
  for (const auto& call : std::span(calls_).first(begun_)) {
    if (!call->IsAnswered()) call->End();
  }
}

SteppedCalls::Progress BatchedCalls::Step() {
  using Progress = SteppedCalls::Progress;
  const StepTime time;
  while (stepping_ != nullptr || begun_ < calls_.size()) {
    if (stepping_ != nullptr) {
      std::exchange(stepping_, nullptr)->TakeStep();
    } else {
      calls_[begun_++]->Start();
    }
    const bool has_more = stepping_ != nullptr || begun_ < calls_.size();
    if (has_more && time.is_over()) return Progress::kMore;
  }
  waits_ = unanswered_ > 0;
  return waits_ ? Progress::kWaits : Progress::kDone;
}

void BatchedCalls::Answered() {
  if (--unanswered_ == 0 && waits_) batch_.Resume();
}

}  // namespace pando
