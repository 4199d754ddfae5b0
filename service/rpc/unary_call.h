#ifndef PANDO_SERVICE_RPC_UNARY_CALL_H_
#define PANDO_SERVICE_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "service/calls/method.h"
#include "service/calls/method_metrics.h"
#include "service/calls/served_call.h"
#include "service/rpc/async_service.h"
#include "service/rpc/event.h"
#include "service/rpc/grpc_status.h"
#include "service/rpc/parse_request.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/step.h"

namespace pando {

// Receives the calls of one unary method over gRPC, one after the other. The
// messages are reused, so that a call allocates little. When a call waits for
// others, another UnaryCall is made to receive the next one, and this one is
// deleted when its call has been answered. Lives on the polling thread.
template <typename Request, typename Response>
class UnaryCall final : public Event, public ServedCall<Request, Response> {
 public:
  using Base = ServedCall<Request, Response>;
  using Responder = grpc::ServerAsyncResponseWriter<Response>;
  // Asks gRPC for the next call of the method, with `tag`.
  using Arm = std::function<void(grpc::ServerContext*, grpc::ByteBuffer*,
                                 Responder*, grpc::CompletionQueue*,
                                 grpc::ServerCompletionQueue*, void* tag)>;

  UnaryCall(RpcServer* server, Arm arm, MethodPointer<Request, Response> method,
            MethodMetrics metrics)
      : Base(server->policy(), std::move(method), metrics, &request_,
             &response_),
        server_(server),
        arm_(std::move(arm)),
        metrics_(metrics) {}

  Caller caller() const override { return server_->CallerOf(*context_); }

  void Run(bool ok) override {
    switch (next_) {
      case Next::kArm:
        OperationDone();
        break;
      case Next::kAnswer:  // not ok: the server stops, nothing has arrived
        if (ok && !server_->is_stopping()) this->Begin();
        break;
    }
  }

 private:
  enum class Next { kArm, kAnswer };
  static constexpr size_t kLongRequestBytes = size_t{64} << 10;

  void Rearm() {
    if (server_->is_stopping()) return;
    next_ = Next::kAnswer;
    Empty(response_);
    responder_.reset();
    context_.emplace();
    responder_.emplace(&*context_);
    operations_ = 1;  // Finish
    if (this->method()->waiting == Waiting::kAllowed) {
      ++operations_;
      context_->AsyncNotifyWhenDone(&on_done_);
    }
    arm_(&*context_, &bytes_, &*responder_, server_->queue(), server_->queue(),
         this);
  }

  // A large request is parsed outside the turn.
  absl::Status Parse() override {
    if (bytes_.Length() < kLongRequestBytes) {
      return ParseRequest(bytes_, request_);
    }
    const FairMutexPause others(&server_->policy()->turn().mutex());
    return ParseRequest(bytes_, request_);
  }

  void Send(const absl::Status& status) override {
    next_ = Next::kArm;
    bytes_.Clear();  // they remain when the call was refused unparsed
    if (server_->is_stopping()) return OperationDone();
    // The caller may never read the answer.
    Empty(request_);
    if (status.ok()) {
      responder_->Finish(response_, grpc::Status::OK, this);
    } else {
      responder_->FinishWithError(ToGrpcStatus(status), this);
    }
  }

  // A step is followed by the next one soon: until then no other call of this
  // object's is received, so that no more requests are kept than are armed.
  bool OnStep() override {
    is_between_steps_ = true;
    return false;
  }

  void OnWait() override {
    if (std::exchange(is_between_steps_, false)) return;
    if (std::exchange(has_successor_, true)) return;
    server_->StartCall(
        std::make_unique<UnaryCall>(server_, arm_, this->method(), metrics_));
  }

  // The call is over on both sides; only a waiting one is cut short by that.
  void OnDone() {
    if (next_ == Next::kAnswer) this->Cancel();
    OperationDone();
  }

  void OperationDone() {
    if (--operations_ > 0) return;
    if (has_successor_) {
      server_->RemoveCall(this);  // deletes this
    } else {
      Rearm();
    }
  }

  // Empties the message. Keeps its memory for the next call, unless it is
  // large.
  template <typename Message>
  static void Empty(Message& message) {
    constexpr size_t kKeptBytes = size_t{1} << 20;
    if (message.SpaceUsedLong() > kKeptBytes) {
      message = Message();
    } else {
      message.Clear();
    }
  }

  RpcServer* const server_;
  const Arm arm_;
  const MethodMetrics metrics_;
  Next next_ = Next::kArm;
  bool is_between_steps_ = false;
  bool has_successor_ = false;  // another one that receives calls in its place
  // Those that have not completed; at first, the event that arms the call.
  int operations_ = 1;
  grpc::ByteBuffer bytes_;  // the request, until it is parsed
  Request request_;
  Response response_;
  std::optional<grpc::ServerContext> context_;
  std::optional<Responder> responder_;
  Step on_done_{[this](bool) { OnDone(); }};
};

// How many calls of one method can be in flight between gRPC and the polling
// thread; more wait inside gRPC.
inline constexpr int kArmedCalls = 16;

// Receives the calls of one method of a generated service.
template <typename Generated, typename Request, typename Response>
void ServeMethod(RpcServer& server, AsyncService<Generated>& service,
                 RpcMetrics& metrics, MethodPointer<Request, Response> method) {
  const auto arm = service.template Unary<Response>(method->name);
  const MethodMetrics counts = metrics.ForMethod(method->service, method->name);
  for (int i = 0; i < kArmedCalls; ++i) {
    server.AddCall(std::make_unique<UnaryCall<Request, Response>>(
        &server, arm, method, counts));
  }
}

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_UNARY_CALL_H_
