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
#include "os/sockets/acceptor.h"
#include "os/sockets/peer_filter.h"
#include "os/sockets/peer_table.h"
#include "os/sockets/tcp_listener.h"
#include "os/sockets/unix_listener.h"
#include "os/sockets/unix_peer.h"
#include "os/turn_actions.h"
#include "service/calls/call_policy.h"
#include "service/rpc/calls_in_transit.h"
#include "service/rpc/event.h"
#include "service/rpc/queue_wakeup.h"
#include "service/rpc/timer.h"
#include "service/security/access_control.h"
#include "service/security/permissions.h"

namespace pando {

// A gRPC server on one completion queue. One polling thread serves the queue
// and also runs the handlers: without a hand-over between threads, gRPC has the
// least latency on few CPUs. Everything that is registered here, handlers and
// timers, therefore runs on that thread, in the turn (see Turn), and must not
// block.
//
// Owned by Server, or by a benchmark. Use: register services and calls, Start,
// Shutdown. Start and Shutdown come from one thread.
class RpcServer final : public TurnActions {
 public:
  struct Config {
    // Where to listen for local callers. With an empty path there is no Unix
    // socket.
    UnixSocket socket;
    // Decides which processes may connect to that socket; outlives the server.
    // If it is null, every process may.
    PeerFilter* filter = nullptr;
    // Where to listen for TCP. With an empty address there is no TCP.
    TcpSocket tcp = {};
    // The credentials for TCP; null: TCP connections are not encrypted.
    std::shared_ptr<grpc::ServerCredentials> tcp_credentials = nullptr;
    // The bytes of the largest request.
    int max_receive_bytes = 0;
    // The most calls that one connection may have at a time; more wait in the
    // client.
    int max_calls_per_connection = std::numeric_limits<int>::max();
  };

  // `policy` has the rules for the server's calls; it outlives the server.
  explicit RpcServer(CallPolicy* policy);
  ~RpcServer();
  RpcServer(const RpcServer&) = delete;
  RpcServer& operator=(const RpcServer&) = delete;

  // Adds a service; it outlives the server. This function and the next three
  // are called before Start.
  void AddService(grpc::Service* service) { services_.push_back(service); }
  // Adds an event that receives a call of one method. It is armed when the
  // server starts.
  void AddCall(std::unique_ptr<Event> call) { calls_.insert(std::move(call)); }
  Timer* AddTimer(absl::Duration period, std::function<void()> action) override;
  Wakeup* AddWakeup(std::function<void()> action) override;

  // Starts the thread and listens. Returns ALREADY_EXISTS if another server has
  // the Unix socket, UNAVAILABLE if the TCP address cannot be listened at, or
  // another error. Server::StartRpc tells the two addresses apart by the code.
  absl::Status Start(const Config& config);
  // Runs `action` on the polling thread, between two calls, and waits for it.
  // To be called by the thread that started the server.
  void RunOnPollingThread(std::function<void()> action);
  // Ends running calls after `grace`, then stops the thread. Idempotent.
  void Shutdown(absl::Duration grace);

  // The members below are for calls, on the polling thread. StartCall adds a
  // call and arms it at once. RemoveCall deletes a call that has no operation
  // under way.
  void StartCall(std::unique_ptr<Event> call);
  void RemoveCall(Event* call) { calls_.erase(call); }
  // The queue on which calls start operations. They must not start any once
  // is_stopping().
  grpc::ServerCompletionQueue* queue() { return queue_.get(); }
  bool is_stopping() const { return is_stopping_; }
  // Returns whether Shutdown has begun. If so, it may be what cuts calls off.
  // Thread-safe.
  bool is_ending() const { return is_ending_; }
  CallPolicy* policy() { return policy_; }
  CallsInTransit& calls_in_transit() { return calls_in_transit_; }
  // CallerOf returns the caller of a call. PeerNameOf returns the caller's name
  // for the log: "unix:uid=1000,pid=42", or the name that gRPC gives.
  Caller CallerOf(const grpc::ServerContext& call) const;
  std::string PeerNameOf(const grpc::ServerContext& call) const;
  // Does what CallPolicy::Identify does.
  absl::StatusOr<const Credential*> Identify(
      const Permission& needed, const grpc::ServerContext& call) const {
    return policy_->Identify(needed, [&] { return CallerOf(call); });
  }
  // Returns OK if the caller may make this call with this request, else the
  // error for the caller.
  template <typename Request>
  absl::Status Admit(const Permission& needed, const grpc::ServerContext& call,
                     const Request& request) const {
    ASSIGN_OR_RETURN(const Credential* const credential,
                     Identify(needed, call));
    return policy_->Admit(needed, credential, request);
  }
  // Does what CallPolicy::Own does.
  std::string Own(SessionId session, const grpc::ServerContext& call) {
    return policy_->Own(session, [&] { return CallerOf(call); });
  }

 private:
  class OneTimeAction;
  class Stop;

  absl::Status Listen(const Config& config);
  void AddUnixConnection(UniqueFd fd, PeerFilter* filter);
  void AddTcpConnection(UniqueFd fd);
  void Poll();

  CallPolicy* const policy_;
  std::vector<grpc::Service*> services_;
  absl::flat_hash_set<std::unique_ptr<Event>> calls_;
  std::vector<std::unique_ptr<QueueWakeup>> wakeups_;
  Timers timers_;
  CallsInTransit calls_in_transit_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::shared_ptr<grpc::ServerCredentials> tcp_credentials_;
  std::unique_ptr<grpc::Server> server_;
  PeerTable peers_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>
      tcp_connections_;
  std::unique_ptr<UnixListener> unix_listener_;
  std::unique_ptr<TcpListener> tcp_listener_;
  std::unique_ptr<Acceptor> acceptor_;
  std::atomic<bool> is_ending_ = false;
  bool is_stopping_ = false;  // used by the polling thread alone
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_RPC_SERVER_H_
