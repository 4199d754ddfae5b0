#include "service/rpc/rpc_server.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <pthread.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace pando {
namespace {

// A stream of the reflection service, which is gRPC's own, keeps a thread, and
// anybody may open one. All other calls need none.
constexpr int kMaxGrpcThreads = 4;  // one of them waits for the next stream

}  // namespace

// Something to be done on the polling thread, once.
class RpcServer::Errand : public Event {
 public:
  Errand(RpcServer* server, std::function<void()> action)
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

// Shuts the queue down on the polling thread, which starts all operations: so
// none is started on a queue that is shut down.
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

RpcServer::RpcServer(CallPolicy* policy) : policy_(policy) {}

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

Timer* RpcServer::AddTimer(absl::Duration period,
                           std::function<void()> action) {
  return timers_.Add(period, AddWakeup(std::move(action)));
}

Wakeup* RpcServer::AddWakeup(std::function<void()> action) {
  wakeups_.push_back(std::make_unique<Wakeup>(std::move(action)));
  return wakeups_.back().get();
}

void RpcServer::StartCall(std::unique_ptr<Event> call) {
  (*calls_.insert(std::move(call)).first)->Run(true);
}

absl::Status RpcServer::Start(const Config& config) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // gRPC's own health service brings threads that poll our connections and
  // hand each event over: HealthService does the same on our queue.
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  if (!config.tcp.empty()) {
    tcp_credentials_ = config.tcp_credentials != nullptr
                           ? config.tcp_credentials
                           : grpc::InsecureServerCredentials();
    builder.AddListeningPort(config.tcp, tcp_credentials_);
  }
  // A second server on the same port must fail, not share its connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Finds out when the host of a TCP peer is gone.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             config.max_calls_per_connection);
  builder.SetResourceQuota(
      grpc::ResourceQuota("pandod").SetMaxThreads(kMaxGrpcThreads));
  builder.SetMaxReceiveMessageSize(config.max_receive_bytes);
  builder.SetMaxSendMessageSize(-1);
  for (grpc::Service* service : services_) builder.RegisterService(service);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", config.tcp,
                                               ": is the address free?"));
  }
  for (const auto& call : calls_) call->Run(true);
  for (auto& wakeup : wakeups_) wakeup->Open(queue_.get());
  timers_.Start();
  thread_ = std::thread([this] { Poll(); });
  return Listen(config);
}

absl::Status RpcServer::Listen(const Config& config) {
  if (config.socket.path.empty()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<UnixAcceptor>> acceptor = UnixAcceptor::Start(
      config.socket, config.filter, [this](UniqueFd fd, const UnixPeer& peer) {
        AddConnection(std::move(fd), peer);
      });
  if (!acceptor.ok()) return acceptor.status();
  acceptor_ = *std::move(acceptor);
  return absl::OkStatus();
}

void RpcServer::AddConnection(UniqueFd fd, const UnixPeer& peer) {
  peers_.Put(fd.get(), peer);
  grpc::AddInsecureChannelFromFd(server_.get(), fd.release());
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
    absl::MutexLock turn(&policy_->turn());
    static_cast<Event*>(tag)->Run(ok);
  }
}

void RpcServer::RunOnPollingThread(std::function<void()> action) {
  Errand errand(this, std::move(action));
  errand.Wait();
}

void RpcServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  is_ending_ = true;
  acceptor_.reset();
  server_->Shutdown(gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_micros(absl::ToInt64Microseconds(grace), GPR_TIMESPAN)));
  timers_.Stop();
  Stop stop(this);
  thread_.join();
  server_.reset();
}

}  // namespace pando
