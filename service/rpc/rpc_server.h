#ifndef PANDO_SERVICE_RPC_RPC_SERVER_H_
#define PANDO_SERVICE_RPC_RPC_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "service/rpc/call_rates.h"
#include "service/rpc/event.h"
#include "service/rpc/timer.h"
#include "service/rpc/wakeup.h"
#include "service/security/access_control.h"
#include "service/security/permissions.h"
#include "service/sockets/acceptor.h"
#include "service/sockets/peer_filter.h"
#include "service/sockets/peer_table.h"
#include "service/sockets/tcp_listener.h"
#include "service/sockets/unix_listener.h"
#include "service/sockets/unix_peer.h"

namespace pando {

// A gRPC server on one completion queue with one polling thread, which also
// runs the handlers: no hand-over between threads, the least latency that gRPC
// has on few cores. Everything that is registered here, handlers and timers,
// therefore runs on that thread and must not block.
//
// Owned by Server, or by a benchmark. Use: register services and calls, Start,
// Shutdown. Start and Shutdown come from one thread.
class RpcServer {
 public:
  struct Config {
    // With no path: none.
    UnixSocket socket;
    // Who may connect to it; outlives the server. Null: all.
    PeerFilter* filter = nullptr;
    // host:port; empty: none.
    std::string tcp = {};
    // Null: in the clear.
    std::shared_ptr<grpc::ServerCredentials> tcp_credentials = nullptr;
    // Decides on each call; outlives the server. Null: everybody may do all.
    AccessControl* access = nullptr;
    // Whether a session is open; null: none is.
    std::function<bool(SessionId)> is_live = nullptr;
    int max_receive_bytes = 0;
    // That run at the same time; more wait in the client.
    int max_calls_per_connection = std::numeric_limits<int>::max();
    // Calls whose handlers take longer are logged; zero: none.
    absl::Duration slow_call = absl::ZeroDuration();
  };

  RpcServer();
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Before Start. `service` outlives the server.
  void AddService(grpc::Service* service) { services_.push_back(service); }
  // What receives a call of one method. It is armed when the server starts.
  void AddCall(std::unique_ptr<Event> call) { calls_.insert(std::move(call)); }
  // Runs `action` every `period` while the server runs; lives as long as it.
  Timer* AddTimer(absl::Duration period, std::function<void()> action);
  // Runs `action` when any thread requests it; lives as long as the server.
  Wakeup* AddWakeup(std::function<void()> action);

  absl::Status Start(const Config& config);
  // Runs `action` on the polling thread, between two calls, and returns when it
  // has. From the thread that started the server.
  void RunOnPollingThread(std::function<void()> action);
  // Ends running calls after `grace`, then stops the thread. Idempotent.
  void Shutdown(absl::Duration grace);

  // For calls, on the polling thread. One more, which is armed at once; and one
  // less, which has no operation running and is deleted.
  void StartCall(std::unique_ptr<Event> call);
  void RemoveCall(Event* call) { calls_.erase(call); }
  // The queue that operations are started on; none may be once the server is
  // stopping.
  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  bool is_stopping() const { return is_stopping_; }
  // Shutdown has begun: calls that break now are cut off by it.
  bool is_ending() const { return is_ending_; }
  bool IsSlow(absl::Duration time) const {
    return slow_call_ > absl::ZeroDuration() && time >= slow_call_;
  }
  void set_slow_call(absl::Duration slow_call) { slow_call_ = slow_call; }
  CallRates& call_rates() { return call_rates_; }
  // Who makes a call; and its name, "unix:uid=1000,pid=42" or what gRPC has.
  Caller CallerOf(const grpc::ServerContext& call) const {
    return {call, peers_.Find(call.peer())};
  }
  std::string PeerNameOf(const grpc::ServerContext& call) const;
  // Who calls, or why whoever it is may not make such a call, whatever it
  // requests. Null: everybody may.
  absl::StatusOr<const Credential*> Identify(
      const Permission& needed, const grpc::ServerContext& call) const {
    if (access_ == nullptr || !needed.role.has_value()) return nullptr;
    return access_->Identify(needed, CallerOf(call));
  }
  // Ok, or why a call of this credential with this request is refused.
  template <typename Request>
  absl::Status Admit(const Permission& needed, const Credential* credential,
                     const Request& request) const {
    if (credential == nullptr) return absl::OkStatus();
    return access_->Admit(needed, *credential, request);
  }
  // Both at once.
  template <typename Request>
  absl::Status Admit(const Permission& needed, const grpc::ServerContext& call,
                     const Request& request) const {
    ASSIGN_OR_RETURN(const Credential* const credential,
                     Identify(needed, call));
    return Admit(needed, credential, request);
  }
  // Whether the caller may see what is in all namespaces.
  bool SpansNamespaces(const grpc::ServerContext& call) const {
    return access_ == nullptr || access_->SpansNamespaces(CallerOf(call));
  }
  // Ok, or why a call that names this session comes too soon.
  absl::Status CheckRate(SessionId session, const grpc::ServerContext& call);
  // The call has opened this session, which is its caller's from now on.
  void Own(SessionId session, const grpc::ServerContext& call) {
    if (access_ != nullptr) access_->Own(session, CallerOf(call));
  }

 private:
  class Errand;
  class Stop;

  absl::Status Listen(const Config& config);
  void AddUnixConnection(UniqueFd fd, PeerFilter* filter);
  void AddTcpConnection(UniqueFd fd);
  void Poll();

  std::vector<grpc::Service*> services_;
  absl::flat_hash_set<std::unique_ptr<Event>> calls_;
  std::vector<std::unique_ptr<Wakeup>> wakeups_;
  Timers timers_;
  absl::Duration slow_call_;
  CallRates call_rates_;
  std::function<bool(SessionId)> is_live_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::shared_ptr<grpc::ServerCredentials> tcp_credentials_;
  std::unique_ptr<grpc::Server> server_;
  PeerTable peers_;
  AccessControl* access_ = nullptr;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> tcp_door_;
  std::unique_ptr<UnixListener> unix_listener_;
  std::unique_ptr<TcpListener> tcp_listener_;
  std::unique_ptr<Acceptor> acceptor_;
  std::atomic<bool> is_ending_ = false;
  bool is_stopping_ = false;  // used by the polling thread alone
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_RPC_SERVER_H_
