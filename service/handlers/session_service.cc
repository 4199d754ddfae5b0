#include "service/handlers/session_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "core/operators/session_ends.h"
#include "core/requests/errors.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "os/random_id.h"
#include "service/handlers/session_stream.h"
#include "service/rpc/step.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr size_t kMaxClientNameBytes = 128;
// The most session streams of one connection. A worker has one or a few
// sessions. The limit bounds memory: on each stream the peer may leave a
// message of the largest size unfinished for as long as it likes.
constexpr int kMaxStreamsOfConnection = 64;

}  // namespace

SessionService::SessionService(PrefixCache* cache, SteppedCalls* stepped,
                               RpcServer* server,
                               const std::atomic<bool>* is_draining,
                               Config config)
    : cache_(cache),
      stepped_(stepped),
      server_(server),
      is_draining_(is_draining),
      config_(std::move(config)),
      arm_open_(grpc_.Method("Open")) {}

SessionService::~SessionService() = default;

void SessionService::Register(RpcMetrics& metrics) {
  metrics_ = std::make_unique<MethodMetrics>(metrics.ForMethod(
      v1::Sessions::service_full_name(), "Open", "bidi_stream"));
  server_->AddService(&grpc_);
  ServeMethod(*server_, grpc_, metrics,
              MakeMethod<v1::Sessions>(this, &SessionService::End));
  server_->AddCall(std::make_unique<Step>([this](bool) { Arm(); }));
}

void SessionService::Arm() {
  if (server_->is_stopping()) return;
  auto stream = std::make_unique<SessionStream>(this);
  SessionStream* armed = stream.get();
  streams_.emplace(armed, std::move(stream));
  armed->Arm();
}

void SessionService::Remove(SessionStream* stream) { streams_.erase(stream); }

void SessionService::LeftConnection(const std::string& connection) {
  const auto found = streams_of_connection_.find(connection);
  CHECK(found != streams_of_connection_.end());
  if (--found->second == 0) streams_of_connection_.erase(found);
}

void SessionService::EndIfNotAdmitted() {
  for (const auto& [session, current] : current_)
    current.stream->EndIfNotAdmitted();
}

void SessionService::AnnounceDrain() {
  if (std::exchange(drain_announced_, true)) return;
  for (const auto& [session, current] : current_) {
    current.stream->SendDraining();
  }
}

absl::StatusOr<SessionId> SessionService::Open(
    const v1::OpenSessionRequest& request, const grpc::ServerContext& call,
    SessionStream* stream) {
  RETURN_IF_ERROR(Admit(request, call));
  if (request.client_name().size() > kMaxClientNameBytes) {
    return MakeError(
        Reason::kInvalidField,
        absl::StrCat("client_name has ", request.client_name().size(),
                     " bytes; the limit is ", kMaxClientNameBytes));
  }
  const auto streams = streams_of_connection_.find(stream->connection());
  if (streams != streams_of_connection_.end() &&
      streams->second == kMaxStreamsOfConnection) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "there are ", streams->second,
        " sessions on this connection, as many as it may have; others need "
        "other connections"));
  }
  SessionId session(request.resume_session_id());
  if (session != SessionId()) {
    ASSIGN_OR_RETURN(const SessionNumber resumed,
                     cache_->ResumeSession(session));
    current_[session] = {stream, resumed};
    Log(LogLevel::kInfo, "session resumed", {{"session", resumed.value()}});
  } else {
    if (is_draining_->load(std::memory_order_relaxed)) {
      return MakeError(Reason::kDraining, "the server is shutting down");
    }
    session = SessionId(RandomId());
    const SessionNumber number =
        cache_->OpenSession(session, request.client_name());
    current_[session] = {stream, number};
    cache_->SetSessionOwner(session, server_->Own(session, call));
    Log(LogLevel::kInfo, "session opened",
        {{"session", number.value()}, {"client_name", request.client_name()}});
  }
  ++streams_of_connection_[stream->connection()];
  return session;
}

std::optional<absl::Status> SessionService::End(
    const v1::EndSessionRequest& request, v1::EndSessionResponse&,
    WaitingCall& call) {
  return stepped_->AnswerFromCache<SessionEnds>(
      call,
      [&] {
        const SessionId session(request.session_id());
        cache_->CloseSession(session);
        config_.on_closed(session);
        return SessionEnds();
      },
      [](SessionEnds&) { return absl::OkStatus(); });
}

absl::Status SessionService::Admit(const v1::OpenSessionRequest& request,
                                   const grpc::ServerContext& call) const {
  static const Permission permission =
      PermissionFor(v1::Sessions::service_full_name(), "Open");
  return server_->Admit(permission, call, request);
}

void SessionService::StreamClosed(SessionId session, SessionStream* stream) {
  const std::optional<SessionNumber> number = TakeCurrent(session, stream);
  if (!number.has_value()) return;
  Log(LogLevel::kInfo, "session closed", {{"session", number->value()}});
  cache_->CloseSession(session);
  config_.on_closed(session);
}

void SessionService::StreamBroke(SessionId session, SessionStream* stream) {
  const std::optional<SessionNumber> number = TakeCurrent(session, stream);
  if (!number.has_value()) return;
  if (server_->is_ending()) {
    Log(LogLevel::kInfo, "session ends with the server",
        {{"session", number->value()}});
  } else {
    Log(LogLevel::kWarning, "the stream of a session broke",
        {{"session", number->value()},
         {"grace_ms", absl::ToInt64Milliseconds(grace_)}});
  }
  cache_->SuspendSession(session, MonotonicNow() + grace_);
}

std::optional<SessionNumber> SessionService::TakeCurrent(
    SessionId session, const SessionStream* stream) {
  const auto it = current_.find(session);
  if (it == current_.end() || it->second.stream != stream) return std::nullopt;
  const SessionNumber number = it->second.number;
  current_.erase(it);
  return number;
}

}  // namespace pando
