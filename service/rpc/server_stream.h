#ifndef PANDO_SERVICE_RPC_SERVER_STREAM_H_
#define PANDO_SERVICE_RPC_SERVER_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "os/monotonic_clock.h"
#include "service/calls/call_log.h"
#include "service/calls/method_metrics.h"
#include "service/rpc/async_service.h"
#include "service/rpc/grpc_status.h"
#include "service/rpc/parse_request.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/step.h"
#include "service/rpc/transit.h"

namespace pando {

// Produces the messages of one server-streaming call. It is asked for the next
// message only when the one before has been sent. So a slow client slows it
// down, and no messages pile up. Used on the polling thread.
template <typename Response>
class StreamSource {
 public:
  enum class Next {
    kMessage,
    kNothingYet,  // it is asked again after StreamMethod::Resume
    kEnd,
  };

  virtual ~StreamSource() = default;
  // Fills in `message`, which is empty.
  virtual Next Fill(Response& message) = 0;
  // The status that the call ends with, after kEnd.
  virtual absl::Status end() const { return absl::OkStatus(); }
};

template <typename Request, typename Response>
class ServerStream;

// One server-streaming method: it waits for calls and owns those that run.
// Lives on the polling thread.
template <typename Request, typename Response>
class StreamMethod {
 public:
  using Handler =
      std::function<absl::StatusOr<std::unique_ptr<StreamSource<Response>>>(
          const Request&)>;

  // `server` outlives the method.
  StreamMethod(RpcServer* server, ArmCall arm, Handler handler,
               MethodMetrics metrics)
      : server_(server),
        arm_(std::move(arm)),
        handler_(std::move(handler)),
        metrics_(metrics),
        permission_(PermissionFor(metrics.service(), metrics.method())) {
    server_->AddCall(std::make_unique<Step>([this](bool) { Arm(); }));
  }

  // Ends each stream whose caller would not be admitted any more.
  void EndIfNotAdmitted() {
    for (const auto& [stream, owned] : streams_) stream->EndIfNotAdmitted();
  }

  // Asks each stream again that had nothing to send.
  void Resume() {
    for (const auto& [stream, owned] : streams_) stream->Continue();
  }

 private:
  friend class ServerStream<Request, Response>;

  // Waits for the next call.
  void Arm() {
    if (server_->is_stopping()) return;
    auto stream = std::make_unique<ServerStream<Request, Response>>(this);
    auto* armed = stream.get();
    streams_.emplace(armed, std::move(stream));
    armed->Arm();
  }
  void Remove(ServerStream<Request, Response>* stream) {
    streams_.erase(stream);
  }

  RpcServer* const server_;
  const ArmCall arm_;
  const Handler handler_;
  MethodMetrics metrics_;
  const Permission permission_;
  absl::flat_hash_map<ServerStream<Request, Response>*,
                      std::unique_ptr<ServerStream<Request, Response>>>
      streams_;
};

// One call of a server-streaming method, from the wait for it to its end. Owned
// by StreamMethod, which it asks to delete it when its last operation is done.
//
//   arrive -> read the request -> write what the source fills in, message by
//   message -> finish, at the source's end or on an error
template <typename Request, typename Response>
class ServerStream {
 public:
  using Method = StreamMethod<Request, Response>;

  explicit ServerStream(Method* method)
      : method_(method),
        call_(&context_),
        transit_(method->server_, [this](bool ok) { OnRead(ok); }) {}

  void Arm() {
    context_.AsyncNotifyWhenDone(&on_done_);
    method_->arm_(&context_, &call_, method_->server_->queue(), &on_arrived_);
  }

  // Ends the stream if its caller would not be admitted any more. A message
  // that is on its way is sent first.
  void EndIfNotAdmitted() {
    if (source_ == nullptr || is_over_) return;
    refusal_ = LoggedRefusal(
        method_->server_->Admit(method_->permission_, context_, request_));
    if (refusal_.ok()) return;
    source_.reset();
    if (!is_writing_) Finish(refusal_);
  }

  // Sends the next message, unless one is on its way or there is none.
  void Continue() {
    if (source_ == nullptr || is_writing_ || is_over_ ||
        method_->server_->is_stopping()) {
      return;
    }
    using Next = typename StreamSource<Response>::Next;
    message_.Clear();
    switch (source_->Fill(message_)) {
      case Next::kMessage:
        ++operations_;
        is_writing_ = true;
        call_.Write(message_, &on_written_);
        break;
      case Next::kNothingYet:
        break;
      case Next::kEnd:
        Finish(source_->end());
        break;
    }
  }

 private:
  void OnArrived(bool ok) {
    if (!ok) {  // the server stops; there will be no OnDone either
      method_->Remove(this);
      return;
    }
    arrived_at_ = MonotonicNow();
    method_->metrics_.Start();
    operations_ = 2;  // OnDone and OnRead
    method_->Arm();
    transit_.Begin(context_, &call_, &bytes_);
  }

  void OnRead(bool ok) {
    if (!is_over_) Start(ok);
    transit_.Leave();
    OperationDone();
  }

  void Start(bool has_request) {
    if (!has_request) {
      return Finish(absl::InternalError("the call ended before its request"));
    }
    auto source = Begin();
    if (!source.ok()) return Finish(source.status());
    source_ = *std::move(source);
    Continue();
  }

  absl::StatusOr<std::unique_ptr<StreamSource<Response>>> Begin() {
    absl::Status admitted = AdmitArrived();
    bytes_.Clear();
    request_.DiscardUnknownFields();  // it is kept as long as the stream
    RETURN_IF_ERROR(LoggedRefusal(std::move(admitted)));
    return method_->handler_(request_);
  }

  // The bytes of a caller without a credential are never parsed.
  absl::Status AdmitArrived() {
    ASSIGN_OR_RETURN(
        const Credential* const credential,
        method_->server_->Identify(method_->permission_, context_));
    RETURN_IF_ERROR(ParseRequest(bytes_, request_));
    return method_->server_->policy()->Admit(method_->permission_, credential,
                                             request_);
  }

  absl::Status LoggedRefusal(absl::Status admitted) {
    if (admitted.ok()) return admitted;
    LogRefusedCall({.service = method_->metrics_.service(),
                    .method = method_->metrics_.method(),
                    .status = admitted,
                    .time = absl::ZeroDuration(),
                    .peer = method_->server_->PeerNameOf(context_)});
    return admitted;
  }

  void OnWritten(bool ok) {
    is_writing_ = false;
    if (!refusal_.ok() && !is_over_) {
      Finish(refusal_);
    } else if (ok) {
      Continue();
    }
    OperationDone();
  }

  // The call is over on both sides.
  void OnDone() {
    method_->metrics_.Record(context_.IsCancelled()
                                 ? absl::CancelledError("the client left")
                                 : final_status_,
                             MonotonicNow() - arrived_at_);
    is_over_ = true;
    source_.reset();
    transit_.CallIsOver();
    OperationDone();
  }

  void Finish(const absl::Status& status) {
    if (method_->server_->is_stopping()) return;
    final_status_ = status;
    is_over_ = true;
    ++operations_;
    call_.Finish(ToGrpcStatus(status), &on_finished_);
  }

  void OperationDone() {
    if (--operations_ == 0) method_->Remove(this);
  }

  Method* const method_;
  grpc::ServerContext context_;
  AsyncCall<Response> call_;
  Transit transit_;
  grpc::ByteBuffer bytes_;  // the request, until it is parsed
  Request request_;
  Response message_;
  std::unique_ptr<StreamSource<Response>> source_;
  absl::Time arrived_at_;
  int operations_ = 0;  // those that have not completed
  bool is_writing_ = false;
  bool is_over_ = false;  // nothing is written any more
  absl::Status refusal_;  // set when EndIfNotAdmitted ends the stream
  absl::Status final_status_;

  Step on_arrived_{[this](bool ok) { OnArrived(ok); }};
  Step on_written_{[this](bool ok) { OnWritten(ok); }};
  Step on_finished_{[this](bool) { OperationDone(); }};
  Step on_done_{[this](bool) { OnDone(); }};
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_SERVER_STREAM_H_
