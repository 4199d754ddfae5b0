#include "service/rpc/rpc_server.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <pthread.h>

#include <climits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "os/sockets/connection_rates.h"
#include "os/sockets/tcp_peer.h"

namespace pando {
namespace {

// The most threads of gRPC. Each stream of the reflection service, which is
// gRPC's own, takes a thread as long as it lasts, and any caller may open one.
// No other call needs a thread.
constexpr int kMaxGrpcThreads = 4;  // one of them waits for the next stream

// The bytes that a peer may send unread: the window that HTTP/2 begins with.
constexpr int kUnreadBytes = (64 << 10) - 1;

bool MayConnect(const std::string& peer, ConnectionRates& rates) {
  if (rates.Admit(peer, MonotonicNow())) return true;
  Log(LogLevel::kWarning, "connection refused: its peer connects too often",
      {{"peer", peer}});
  return false;
}

}  // namespace

// An action that runs once, on the polling thread.
class RpcServer::OneTimeAction : public Event {
 public:
  OneTimeAction(RpcServer* server, std::function<void()> action)
      : action_(std::move(action)) {
    alarm_.Set(server->queue(), gpr_inf_past(GPR_CLOCK_MONOTONIC), this);
  }
  void Run(bool) override {
    action_();
    done_.Notify();
  }
  void Wait() { done_.WaitForNotification(); }

 private:
  const std::function<void()> action_;
  absl::Notification done_;
  grpc::Alarm alarm_;
};

// Shuts the queue down on the polling thread. That thread starts all
// operations, so none is started on a queue that is shut down.
class RpcServer::Stop : public Event {
 public:
  explicit Stop(RpcServer* server) : server_(server) {
    alarm_.Set(server_->queue(), gpr_inf_past(GPR_CLOCK_MONOTONIC), this);
  }
  void Run(bool) override {
    server_->is_stopping_ = true;
    for (auto& wakeup : server_->wakeups_) wakeup->Close();
    server_->queue_->Shutdown();
  }

 private:
  RpcServer* const server_;
  grpc::Alarm alarm_;
};

RpcServer::RpcServer(CallPolicy* policy)
    : policy_(policy),
      calls_in_transit_(AddWakeup([this] { calls_in_transit_.RunNext(); })) {}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

Timer* RpcServer::AddTimer(absl::Duration period,
                           std::function<void()> action) {
  return timers_.Add(period, AddWakeup(std::move(action)));
}

Wakeup* RpcServer::AddWakeup(std::function<void()> action) {
  wakeups_.push_back(std::make_unique<QueueWakeup>(std::move(action)));
  return wakeups_.back().get();
}

void RpcServer::StartCall(std::unique_ptr<Event> call) {
  (*calls_.insert(std::move(call)).first)->Run(true);
}

absl::Status RpcServer::Start(const Config& config) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // gRPC's own health service would bring threads that poll our connections and
  // hand each event over. HealthService serves the same on our queue.
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  if (!config.tcp.address.empty()) {
    tcp_credentials_ = config.tcp_credentials != nullptr
                           ? config.tcp_credentials
                           : grpc::InsecureServerCredentials();
    tcp_connections_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        tcp_credentials_);
  }
  // gRPC sends no keepalive. The peer's process would have to answer its pings,
  // and our polling thread to read the answers, so they would end the sessions
  // of processes that are stopped, and all sessions while we are busy. A Unix
  // socket tells when its peer ends, and TcpListener has the kernel find out
  // whether a host is gone.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             config.max_calls_per_connection);
  // Limits how much of an unread call a peer may send. By default gRPC would
  // widen this window to megabytes on a fast connection.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                             kUnreadBytes);
  builder.SetResourceQuota(
      grpc::ResourceQuota("pandod").SetMaxThreads(kMaxGrpcThreads));
  builder.SetMaxReceiveMessageSize(config.max_receive_bytes);
  builder.SetMaxSendMessageSize(-1);
  for (grpc::Service* service : services_) builder.RegisterService(service);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::UnavailableError("gRPC did not start");
  for (const auto& call : calls_) call->Run(true);
  for (auto& wakeup : wakeups_) wakeup->Open(queue_.get());
  timers_.Start();
  thread_ = std::thread([this] { Poll(); });
  return Listen(config);
}

absl::Status RpcServer::Listen(const Config& config) {
  std::vector<Acceptor::Source> sources;
  // Only the acceptor's thread uses it.
  const auto rates = std::make_shared<ConnectionRates>();
  if (!config.socket.path.empty()) {
    ASSIGN_OR_RETURN(unix_listener_, UnixListener::Start(config.socket));
    sources.push_back({unix_listener_->fd(), unix_listener_->path(),
                       [this, rates, filter = config.filter](UniqueFd fd) {
                         const UnixPeer peer = UnixPeerOf(fd.get());
                         if (!MayConnect(NameOf(peer), *rates)) return;
                         AddUnixConnection(std::move(fd), filter);
                       }});
  }
  if (!config.tcp.address.empty()) {
    ASSIGN_OR_RETURN(tcp_listener_, TcpListener::Start(config.tcp));
    for (const UniqueFd& socket : tcp_listener_->sockets()) {
      sources.push_back(
          {socket.get(), config.tcp.address, [this, rates](UniqueFd fd) {
             if (!MayConnect(TcpHostOf(fd.get()), *rates)) return;
             AddTcpConnection(std::move(fd));
           }});
    }
  }
  ASSIGN_OR_RETURN(acceptor_, Acceptor::Start(std::move(sources)));
  return absl::OkStatus();
}

void RpcServer::AddUnixConnection(UniqueFd fd, PeerFilter* filter) {
  const UnixPeer peer = UnixPeerOf(fd.get());
  if (filter != nullptr && !filter->Admit(peer, unix_listener_->path())) return;
  peers_.Put(fd.get(), peer);
  grpc::AddInsecureChannelFromFd(server_.get(), fd.release());
}

void RpcServer::AddTcpConnection(UniqueFd fd) {
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      connection;
  connection.fd = fd.release();
  tcp_connections_->HandleNewConnection(&connection);
}

Caller RpcServer::CallerOf(const grpc::ServerContext& call) const {
  Caller caller = {.connection = call.peer(), .tls_call = &call};
  caller.peer = peers_.Find(caller.connection);
  const auto& metadata = call.client_metadata();
  const auto shown = metadata.find("authorization");
  if (shown != metadata.end()) {
    caller.authorization.emplace(shown->second.data(), shown->second.size());
  }
  return caller;
}

std::string RpcServer::PeerNameOf(const grpc::ServerContext& call) const {
  return NameOf(CallerOf(call));
}

void RpcServer::Poll() {
  pthread_setname_np(pthread_self(), "polling");
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) {
    FairMutexLock turn(&policy_->turn().mutex());
    static_cast<Event*>(tag)->Run(ok);
  }
}

void RpcServer::RunOnPollingThread(std::function<void()> action) {
  OneTimeAction once(this, std::move(action));
  once.Wait();
}

void RpcServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  is_ending_ = true;
  acceptor_.reset();
  unix_listener_.reset();
  tcp_listener_.reset();
  server_->Shutdown(gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_micros(absl::ToInt64Microseconds(grace), GPR_TIMESPAN)));
  timers_.Stop();
  Stop stop(this);
  thread_.join();
  server_.reset();
}

}  // namespace pando
