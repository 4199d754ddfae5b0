#ifndef PANDO_SERVICE_RPC_UNARY_CALL_H_
#define PANDO_SERVICE_RPC_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "service/rpc/event.h"
#include "service/rpc/grpc_status.h"
#include "service/rpc/method_metrics.h"
#include "service/rpc/rpc_server.h"

namespace pando {

// One place where calls of one unary method arrive, one after the other. The
// messages are reused, so that a call allocates little. Lives on the polling
// thread.
template <typename Request, typename Response>
class UnaryCall : public Event {
 public:
  using Responder = grpc::ServerAsyncResponseWriter<Response>;
  // Asks gRPC for the next call of the method, with `tag`.
  using Arm = std::function<void(grpc::ServerContext*, Request*, Responder*,
                                 grpc::CompletionQueue*,
                                 grpc::ServerCompletionQueue*, void* tag)>;
  using Handler = std::function<absl::Status(const Request&, Response&)>;

  UnaryCall(RpcServer* server, Arm arm, Handler handler, MethodMetrics metrics)
      : server_(server),
        arm_(std::move(arm)),
        handler_(std::move(handler)),
        metrics_(metrics) {}

  void Run(bool ok) override {
    switch (next_) {
      case Step::kArm:
        Rearm();
        break;
      case Step::kAnswer:
        if (ok && !server_->is_stopping()) Answer();
        break;
    }
  }

 private:
  enum class Step { kArm, kAnswer };

  void Rearm() {
    if (server_->is_stopping()) return;
    next_ = Step::kAnswer;
    Empty(request_);
    Empty(response_);
    responder_.reset();
    context_.emplace();
    responder_.emplace(&*context_);
    arm_(&*context_, &request_, &*responder_, server_->queue(),
         server_->queue(), this);
  }

  void Answer() {
    next_ = Step::kArm;
    const absl::Time start = absl::Now();
    const absl::Status status = handler_(request_, response_);
    metrics_.Record(status, absl::Now() - start);
    if (status.ok()) {
      responder_->Finish(response_, grpc::Status::OK, this);
    } else {
      responder_->FinishWithError(ToGrpcStatus(status), this);
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
  Step next_ = Step::kArm;
  Request request_;
  Response response_;
  std::optional<grpc::ServerContext> context_;
  std::optional<Responder> responder_;
};

// How many calls of one method can be in flight between gRPC and the polling
// thread; more wait inside gRPC.
inline constexpr int kArmedCalls = 16;

// Adds the places where calls of one unary method arrive.
template <typename Request, typename Response>
void AddUnaryMethod(RpcServer& server,
                    typename UnaryCall<Request, Response>::Arm arm,
                    typename UnaryCall<Request, Response>::Handler handler,
                    MethodMetrics metrics) {
  for (int i = 0; i < kArmedCalls; ++i) {
    server.AddCall(std::make_unique<UnaryCall<Request, Response>>(
        &server, arm, handler, metrics));
  }
}

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_UNARY_CALL_H_
