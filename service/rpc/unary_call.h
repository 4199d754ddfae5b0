#ifndef PANDO_SERVICE_RPC_UNARY_CALL_H_
#define PANDO_SERVICE_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "service/process/monotonic_clock.h"
#include "service/rpc/call_log.h"
#include "service/rpc/event.h"
#include "service/rpc/grpc_status.h"
#include "service/rpc/method_metrics.h"
#include "service/rpc/parse_request.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/step.h"

namespace pando {

// A call as its handler sees it, which may let it wait.
class WaitingCall {
 public:
  // Runs the handler again. On the polling thread, while the call waits.
  virtual void Resume() = 0;
  // The caller is gone: the handler was run again for that, and must answer.
  virtual bool is_cancelled() const = 0;
  // The caller may see what is in all namespaces.
  virtual bool spans_namespaces() const = 0;
  // The process that calls; none: it does so over TCP.
  virtual std::optional<UnixPeer> peer() const = 0;

 protected:
  ~WaitingCall() = default;
};

// Whether the handlers of a method may let its calls wait.
enum class Waiting { kNever, kAllowed };

// One place where calls of one unary method arrive, one after the other. The
// messages are reused, so that a call allocates little. A call that waits has
// its place for itself: a new place receives the next call, and this one is
// gone when its call has been answered. Lives on the polling thread.
template <typename Request, typename Response>
class UnaryCall final : public Event, public WaitingCall {
 public:
  using Responder = grpc::ServerAsyncResponseWriter<Response>;
  // Asks gRPC for the next call of the method, with `tag`.
  using Arm = std::function<void(grpc::ServerContext*, grpc::ByteBuffer*,
                                 Responder*, grpc::CompletionQueue*,
                                 grpc::ServerCompletionQueue*, void* tag)>;
  // None: the call waits. Both messages live on until it is answered.
  using Handler = std::function<std::optional<absl::Status>(
      const Request&, Response&, WaitingCall&)>;

  UnaryCall(RpcServer* server, Arm arm, Handler handler, MethodMetrics metrics,
            Waiting waiting)
      : server_(server),
        arm_(std::move(arm)),
        handler_(std::move(handler)),
        metrics_(metrics),
        permission_(PermissionFor(metrics.service(), metrics.method())),
        is_limited_(CallRates::IsLimited(metrics.method())),
        waiting_(waiting) {}

  void Run(bool ok) override {
    switch (next_) {
      case Next::kArm:
        OperationDone();
        break;
      case Next::kAnswer:  // not ok: the server stops, nothing has arrived
        if (ok && !server_->is_stopping()) {
          metrics_.Start();
          Begin();
        }
        break;
    }
  }

  void Resume() override { Answer(); }
  bool is_cancelled() const override { return is_cancelled_; }
  bool spans_namespaces() const override {
    return server_->SpansNamespaces(*context_);
  }
  std::optional<UnixPeer> peer() const override {
    return server_->CallerOf(*context_).peer;
  }

 private:
  enum class Next { kArm, kAnswer };

  void Rearm() {
    if (server_->is_stopping()) return;
    next_ = Next::kAnswer;
    Empty(request_);
    Empty(response_);
    responder_.reset();
    context_.emplace();
    responder_.emplace(&*context_);
    operations_ = 1;  // Finish
    if (waiting_ == Waiting::kAllowed) {
      ++operations_;
      context_->AsyncNotifyWhenDone(&on_done_);
    }
    arm_(&*context_, &bytes_, &*responder_, server_->queue(), server_->queue(),
         this);
  }

  void Begin() {
    const absl::Status admitted = Admit();
    bytes_.Clear();
    if (admitted.ok()) {
      Answer();
    } else {
      Reply(admitted);
    }
  }

  // Whether the caller may make this call, and its session so many. Nothing is
  // made of the bytes of a caller who may not.
  absl::Status Admit() {
    ASSIGN_OR_RETURN(const Credential* const credential,
                     server_->Identify(permission_, *context_));
    RETURN_IF_ERROR(ParseRequest(bytes_, request_));
    RETURN_IF_ERROR(server_->Admit(permission_, credential, request_));
    if constexpr (requires { request_.session_id(); }) {
      if (!is_limited_) return absl::OkStatus();
      return server_->CheckRate(SessionId(request_.session_id()), *context_);
    }
    return absl::OkStatus();
  }

  void Answer() {
    const absl::Time start = MonotonicNow();
    const std::optional<absl::Status> status =
        handler_(request_, response_, *this);
    handling_ += MonotonicNow() - start;
    if (status.has_value()) {
      Reply(*status);
    } else if (!std::exchange(has_successor_, true)) {
      AddPlaceForNextCall();
    }
  }

  void Reply(const absl::Status& status) {
    next_ = Next::kArm;
    metrics_.Record(status, handling_);
    if (server_->IsSlow(handling_)) LogSlowCall(Answered(status));
    if (!status.ok()) LogRefusedCall(Answered(status));
    handling_ = absl::ZeroDuration();
    if (status.ok()) {
      responder_->Finish(response_, grpc::Status::OK, this);
    } else {
      responder_->FinishWithError(ToGrpcStatus(status), this);
    }
  }

  AnsweredCall Answered(const absl::Status& status) const {
    AnsweredCall call = {.service = metrics_.service(),
                         .method = metrics_.method(),
                         .status = status,
                         .time = handling_,
                         .peer = server_->PeerNameOf(*context_)};
    if constexpr (requires { request_.request_id(); }) {
      call.request_id = request_.request_id();
    }
    return call;
  }

  void AddPlaceForNextCall() {
    server_->StartCall(std::make_unique<UnaryCall>(server_, arm_, handler_,
                                                   metrics_, waiting_));
  }

  // The call is over on both sides; only a waiting one is cut short by that.
  void OnDone() {
    if (next_ == Next::kAnswer) {
      is_cancelled_ = true;
      Answer();
    }
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

  // Keeps the memory for the next call, unless it is a lot.
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
  const Handler handler_;
  MethodMetrics metrics_;
  const Permission permission_;
  const bool is_limited_;
  const Waiting waiting_;
  Next next_ = Next::kArm;
  int operations_ = 1;  // that have not completed; the first: to be started
  bool has_successor_ = false;
  bool is_cancelled_ = false;
  absl::Duration handling_;
  grpc::ByteBuffer bytes_;  // of the request, until it is parsed
  Request request_;
  Response response_;
  std::optional<grpc::ServerContext> context_;
  std::optional<Responder> responder_;
  Step on_done_{[this](bool) { OnDone(); }};
};

// How many calls of one method can be in flight between gRPC and the polling
// thread; more wait inside gRPC.
inline constexpr int kArmedCalls = 16;

// Adds the places where calls of one unary method arrive whose handler may let
// them wait.
template <typename Request, typename Response>
void AddWaitingMethod(RpcServer& server,
                      typename UnaryCall<Request, Response>::Arm arm,
                      typename UnaryCall<Request, Response>::Handler handler,
                      MethodMetrics metrics,
                      Waiting waiting = Waiting::kAllowed) {
  for (int i = 0; i < kArmedCalls; ++i) {
    server.AddCall(std::make_unique<UnaryCall<Request, Response>>(
        &server, arm, handler, metrics, waiting));
  }
}

// The same for a handler that answers at once:
// absl::Status handler(const Request&, Response&).
template <typename Request, typename Response, typename Handler>
void AddUnaryMethod(RpcServer& server,
                    typename UnaryCall<Request, Response>::Arm arm,
                    Handler handler, MethodMetrics metrics) {
  AddWaitingMethod<Request, Response>(
      server, std::move(arm),
      [handler = std::move(handler)](const Request& in, Response& out,
                                     WaitingCall&)
          -> std::optional<absl::Status> { return handler(in, out); },
      metrics, Waiting::kNever);
}

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_UNARY_CALL_H_
