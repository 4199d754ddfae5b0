#ifndef PANDO_SERVICE_HANDLERS_SESSION_SERVICE_H_
#define PANDO_SERVICE_HANDLERS_SESSION_SERVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/prefix_cache.h"
#include "pando/v1/session.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/stepped_calls.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"

namespace pando {

class SessionStream;

// The handlers of pando.v1.Sessions: they turn the life of streams into the
// life of sessions. Owned by Server; lives on the polling thread.
//
// Invariant: a live session has at most one current stream, and only the end of
// that stream suspends or closes the session. A stream that a resumed one has
// replaced may end at any time.
class SessionService {
 public:
  struct Config {
    v1::PoolDescription pool;
    uint64_t epoch = 0;
    // Called when a worker ends its session, even if the session was lost
    // before.
    std::function<void(SessionId)> on_closed;
  };

  // All pointers outlive the service.
  SessionService(PrefixCache* cache, SteppedCalls* stepped, RpcServer* server,
                 const std::atomic<bool>* is_draining, Config config);
  ~SessionService();

  // Serves its methods over gRPC. To be called before the server starts.
  void Register(RpcMetrics& metrics);
  // Ends a session. Answers once the session holds nothing, and returns none
  // between two steps until then.
  std::optional<absl::Status> End(const v1::EndSessionRequest& request,
                                  v1::EndSessionResponse& response,
                                  WaitingCall& call);
  // Sets how long a session can be resumed after its stream broke.
  void set_grace(absl::Duration grace) { grace_ = grace; }
  // Breaks the streams of callers who may not hold a session any more. Their
  // sessions end as those of workers whose streams broke.
  void EndIfNotAdmitted();
  // Tells every session, once, that the server is draining.
  void AnnounceDrain();

 private:
  friend class SessionStream;
  struct Current {
    SessionStream* stream = nullptr;
    SessionNumber number;
  };

  // Waits for the next stream.
  void Arm();
  void Remove(SessionStream* stream);
  // To be called when a stream for which Open succeeded has ended.
  void LeftConnection(const std::string& connection);

  // Opens or resumes the session that `stream` asks for, and makes `stream` its
  // current one. Returns an error if the caller may not do that or the cache
  // cannot, DRAINING for a new session while the server drains, INVALID_FIELD
  // if the client's name is too long, and RESOURCE_EXHAUSTED if the connection
  // has too many sessions.
  absl::StatusOr<SessionId> Open(const v1::OpenSessionRequest& request,
                                 const grpc::ServerContext& call,
                                 SessionStream* stream);
  // Returns OK if the caller may open or resume this session, else why not.
  absl::Status Admit(const v1::OpenSessionRequest& request,
                     const grpc::ServerContext& call) const;
  // To be called when `stream` has ended, because the worker closed it or
  // because it broke. They have no effect if it is not the session's current
  // stream.
  void StreamClosed(SessionId session, SessionStream* stream);
  void StreamBroke(SessionId session, SessionStream* stream);
  // If `stream` is the session's current one, forgets it and returns the number
  // of the session. Otherwise returns none.
  std::optional<SessionNumber> TakeCurrent(SessionId session,
                                           const SessionStream* stream);

  PrefixCache* const cache_;
  SteppedCalls* const stepped_;
  RpcServer* const server_;
  const std::atomic<bool>* const is_draining_;
  const Config config_;
  absl::Duration grace_;
  AsyncService<v1::Sessions> grpc_;
  const ArmCall arm_open_;
  std::unique_ptr<MethodMetrics> metrics_;
  bool drain_announced_ = false;
  absl::flat_hash_map<SessionStream*, std::unique_ptr<SessionStream>> streams_;
  absl::flat_hash_map<SessionId, Current> current_;
  absl::flat_hash_map<std::string, int> streams_of_connection_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_SESSION_SERVICE_H_
