#include "service/handlers/session_stream.h"

#include "base/status_macros.h"
#include "os/monotonic_clock.h"
#include "service/calls/call_log.h"
#include "service/rpc/grpc_status.h"
#include "service/rpc/parse_request.h"

namespace pando {

SessionStream::SessionStream(SessionService* service)
    : service_(service),
      stream_(&context_),
      transit_(service->server_, [this](bool ok) { OnFirstRead(ok); }) {}

void SessionStream::Arm() {
  context_.AsyncNotifyWhenDone(&on_done_);
  service_->arm_open_(&context_, &stream_, service_->server_->queue(),
                      &on_arrived_);
}

void SessionStream::OnArrived(bool ok) {
  if (!ok) {  // the server stops; there will be no OnDone either
    service_->Remove(this);
    return;
  }
  arrived_at_ = MonotonicNow();
  service_->metrics_->Start();
  operations_ = 2;  // OnDone and OnFirstRead
  service_->Arm();
  transit_.Begin(context_, &stream_, &bytes_);
}

void SessionStream::OnFirstRead(bool ok) {
  if (ok && !is_done_) {
    const absl::StatusOr<SessionId> session = Open();
    if (session.ok()) {
      session_ = *session;
      v1::SessionOpened* opened = event_.mutable_opened();
      opened->set_session_id(session_.value());
      opened->set_epoch(service_->config_.epoch);
      *opened->mutable_pool() = service_->config_.pool;
      Write();
      if (service_->is_draining_->load()) SendDraining();
      Read();
    } else {
      Refuse(session.status());
    }
  } else if (!is_done_) {
    Finish(
        absl::InvalidArgumentError("the stream ended before its first "
                                   "message"));
  }
  transit_.Leave();
  OperationDone();
}

absl::StatusOr<SessionId> SessionStream::Open() {
  v1::OpenSessionRequest request;
  RETURN_IF_ERROR(ParseRequest(bytes_, request));
  return service_->Open(request, context_, this);
}

void SessionStream::OnRead(bool ok) {
  bytes_.Clear();
  if (ok) {
    if (!is_finishing_) Read();
  } else {
    Finish(absl::OkStatus());
  }
  OperationDone();
}

void SessionStream::OnWritten(bool ok) {
  is_writing_ = false;
  if (finish_after_write_.has_value()) {
    Finish(*finish_after_write_);
  } else if (ok && has_unsent_draining_) {
    SendDraining();
  }
  OperationDone();
}

// A worker has closed its session only if it half-closed the stream and
// received the final status. Otherwise it may not know that the stream has
// ended, and may resume the session.
void SessionStream::OnDone() {
  is_done_ = true;
  transit_.CallIsOver();
  service_->metrics_->Record(context_.IsCancelled()
                                 ? absl::CancelledError("the stream broke")
                                 : final_status_,
                             MonotonicNow() - arrived_at_);
  if (session_ != SessionId()) {
    service_->LeftConnection(connection());
    if (context_.IsCancelled() || !final_status_.ok()) {
      service_->StreamBroke(session_, this);
    } else {
      service_->StreamClosed(session_, this);
    }
  }
  OperationDone();
}

void SessionStream::EndIfNotAdmitted() {
  v1::OpenSessionRequest resume;
  resume.set_resume_session_id(session_.value());
  const absl::Status admitted = service_->Admit(resume, context_);
  if (!admitted.ok()) Refuse(admitted);
}

void SessionStream::Refuse(const absl::Status& status) {
  LogRefusedCall({.service = service_->metrics_->service(),
                  .method = service_->metrics_->method(),
                  .status = status,
                  .time = MonotonicNow() - arrived_at_,
                  .peer = service_->server_->PeerNameOf(context_)});
  Finish(status);
}

void SessionStream::SendDraining() {
  has_unsent_draining_ = is_writing_;
  if (is_writing_ || is_finishing_) return;
  event_.mutable_draining();
  Write();
}

void SessionStream::Read() {
  if (service_->server_->is_stopping()) return;
  ++operations_;
  stream_.Read(&bytes_, &on_read_);
}

void SessionStream::Write() {
  if (service_->server_->is_stopping()) return;
  ++operations_;
  is_writing_ = true;
  stream_.Write(event_, &on_written_);
}

void SessionStream::Finish(const absl::Status& status) {
  if (is_finishing_) return;
  if (is_writing_) {
    finish_after_write_ = status;
    return;
  }
  final_status_ = status;
  if (service_->server_->is_stopping()) return;
  ++operations_;
  is_finishing_ = true;
  stream_.Finish(ToGrpcStatus(status), &on_finished_);
}

void SessionStream::OperationDone() {
  if (--operations_ == 0) service_->Remove(this);
}

}  // namespace pando
