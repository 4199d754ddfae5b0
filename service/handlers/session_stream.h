#ifndef PANDO_SERVICE_HANDLERS_SESSION_STREAM_H_
#define PANDO_SERVICE_HANDLERS_SESSION_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "pando/v1/session.grpc.pb.h"
#include "service/handlers/session_service.h"
#include "service/rpc/async_service.h"
#include "service/rpc/step.h"
#include "service/rpc/transit.h"

namespace pando {

// One Sessions.Open stream, from the wait for a call to its end. Owned by
// SessionService, which it asks to delete it when its last operation is done.
// Lives on the polling thread.
//
//   arrive -> read the first message -> open -> write "opened"
//          -> read until the worker half-closes or the stream breaks -> finish
class SessionStream {
 public:
  explicit SessionStream(SessionService* service);

  // Waits for the next call of Sessions.Open.
  void Arm();
  // Tells the worker that the server is draining. If a write is under way, the
  // message follows it.
  void SendDraining();
  const std::string& connection() const { return transit_.connection(); }
  // Ends the stream with an error if its caller may not resume the session now.
  void EndIfNotAdmitted();

 private:
  void OnArrived(bool ok);
  void OnFirstRead(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok);
  // The call is over on both sides.
  void OnDone();

  // Opens or resumes the session that the first message asks for.
  absl::StatusOr<SessionId> Open();
  void Read();
  void Write();
  void Refuse(const absl::Status& status);
  void Finish(const absl::Status& status);
  void OperationDone();

  SessionService* const service_;
  grpc::ServerContext context_;
  AsyncCall<v1::SessionEvent> stream_;
  Transit transit_;
  grpc::ByteBuffer bytes_;  // the message that was read last
  v1::SessionEvent event_;
  SessionId session_;  // zero until Open has succeeded
  absl::Time arrived_at_;
  int operations_ = 0;  // gRPC operations that have not completed
  bool is_writing_ = false;
  bool is_finishing_ = false;
  bool is_done_ = false;
  bool has_unsent_draining_ = false;
  absl::Status final_status_;
  std::optional<absl::Status>
      finish_after_write_;  // set while a write is under way

  Step on_arrived_{[this](bool ok) { OnArrived(ok); }};
  Step on_read_{[this](bool ok) { OnRead(ok); }};
  Step on_written_{[this](bool ok) { OnWritten(ok); }};
  Step on_finished_{[this](bool) { OperationDone(); }};
  Step on_done_{[this](bool) { OnDone(); }};
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_SESSION_STREAM_H_
