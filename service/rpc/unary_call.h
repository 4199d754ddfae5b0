#ifndef PANDO_SERVICE_RPC_UNARY_CALL_H_
#define PANDO_SERVICE_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>

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
#include "service/rpc/transit.h"

namespace pando {

// The parts that all calls of one unary method over gRPC share. Lives on the
// polling thread.
template <typename Request, typename Response>
struct UnaryMethod {
  RpcServer* server;
  ArmCall arm;
  MethodPointer<Request, Response> method;
  MethodMetrics metrics;
  int armed = 0;  // how many UnaryCalls wait for a call to arrive
};

// How many calls of one method may arrive between two looks at the queue; more
// wait inside gRPC. When fewer than kFewestArmed UnaryCalls are left to receive
// them, another one is made. Those above kArmedCalls are deleted when their
// calls are over.
inline constexpr int kArmedCalls = 16;
inline constexpr int kFewestArmed = 8;

// Receives the calls of one unary method over gRPC, one after the other. The
// messages are reused, so that a call allocates little. Owned by RpcServer;
// lives on the polling thread.
template <typename Request, typename Response>
class UnaryCall final : public Event, public ServedCall<Request, Response> {
 public:
  using Base = ServedCall<Request, Response>;
  using Method = UnaryMethod<Request, Response>;

  explicit UnaryCall(std::shared_ptr<Method> method)
      : Base(method->server->policy(), method->method, method->metrics,
             &request_, &response_),
        of_(std::move(method)),
        transit_(of_->server, [this](bool ok) { OnRoom(ok); }) {}

  void Resume() override {
    if (stage_ == Stage::kServed && transit_.Return()) Base::Resume();
  }
  Caller caller() const override { return of_->server->CallerOf(*context_); }

  void Run(bool ok) override {
    if (stage_ == Stage::kNew) {
      Arm();
    } else if (stage_ == Stage::kAnswered) {
      OperationDone();
    } else if (ok && !of_->server->is_stopping()) {
      OnArrived();
    }  // else the server stops, and nothing has arrived
  }

 private:
  enum class Stage { kNew, kArmed, kUnread, kServed, kAnswered };
  static constexpr size_t kLongRequestBytes = size_t{64} << 10;

  void Arm() {
    if (of_->server->is_stopping()) return;
    stage_ = Stage::kArmed;
    ++of_->armed;
    call_.reset();
    context_.emplace();
    call_.emplace(&*context_);
    is_done_ = false;
    operations_ = 2;  // the answer and OnDone
    context_->AsyncNotifyWhenDone(&on_done_);
    of_->arm(&*context_, &*call_, of_->server->queue(), this);
  }

  void OnArrived() {
    if (--of_->armed < kFewestArmed) {
      of_->server->StartCall(std::make_unique<UnaryCall>(of_));
    }
    stage_ = Stage::kUnread;
    transit_.Begin(*context_, &*call_, &bytes_);
  }

  void OnRoom(bool ok) {
    if (stage_ == Stage::kServed) return Base::Resume();
    stage_ = Stage::kServed;
    if (ok && !is_done_) return this->Begin();
    Send(absl::InternalError("the call ended before its request"));
  }

  // A large request is parsed outside the turn.
  absl::Status Parse() override {
    if (bytes_.Length() < kLongRequestBytes) {
      return ParseRequest(bytes_, request_);
    }
    const FairMutexPause others(&of_->server->policy()->turn().mutex());
    return ParseRequest(bytes_, request_);
  }

  void Send(const absl::Status& status) override {
    stage_ = Stage::kAnswered;
    bytes_.Clear();  // they remain when the call was refused unparsed
    if (of_->server->is_stopping()) return OperationDone();
    if (status.ok()) {
      call_->WriteAndFinish(response_, {}, grpc::Status::OK, this);
    } else {
      call_->Finish(ToGrpcStatus(status), this);
    }
    // gRPC has the bytes of the answer now. The messages are emptied at once,
    // because the caller may never read the answer.
    Empty(request_);
    Empty(response_);
  }

  // Notes that the call does not wait for others: its next step follows soon.
  bool OnStep() override {
    is_between_steps_ = true;
    return false;
  }

  // A waiting call gives up its room, because its session's account counts it.
  // A call between two steps keeps it.
  void OnWait() override {
    if (!std::exchange(is_between_steps_, false)) transit_.Leave();
  }

  // The call is over on both sides. If it waits, it must answer now.
  void OnDone() {
    is_done_ = true;
    transit_.CallIsOver();
    if (stage_ == Stage::kServed) this->Cancel();
    OperationDone();
  }

  void OperationDone() {
    if (--operations_ > 0) return;
    transit_.Leave();
    if (of_->armed < kArmedCalls) {
      Arm();
    } else {
      of_->server->RemoveCall(this);  // deletes this
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

  const std::shared_ptr<Method> of_;
  Stage stage_ = Stage::kNew;
  bool is_between_steps_ = false;
  bool is_done_ = false;    // the call is over on both sides
  int operations_ = 0;      // not completed; the read is not counted
  grpc::ByteBuffer bytes_;  // the request, until it is parsed
  Request request_;
  Response response_;
  std::optional<grpc::ServerContext> context_;
  std::optional<AsyncCall<Response>> call_;
  Transit transit_;
  Step on_done_{[this](bool) { OnDone(); }};
};

// Makes a generated service receive the calls of one method.
template <typename Generated, typename Request, typename Response>
void ServeMethod(RpcServer& server, AsyncService<Generated>& service,
                 RpcMetrics& metrics, MethodPointer<Request, Response> method) {
  const auto shared = std::make_shared<UnaryMethod<Request, Response>>(
      UnaryMethod<Request, Response>{
          .server = &server,
          .arm = service.Method(method->name),
          .method = method,
          .metrics = metrics.ForMethod(method->service, method->name)});
  for (int i = 0; i < kArmedCalls; ++i) {
    server.AddCall(std::make_unique<UnaryCall<Request, Response>>(shared));
  }
}

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_UNARY_CALL_H_
