#include "service/rpc/rpc_server.h"

#include <grpcpp/alarm.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <pthread.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace pando {

// Something to be done on the polling thread, once.
class RpcServer::Errand : public Event {
 public:
  Errand(RpcServer* server, std::function<void()> action)
      : action_(std::move(action)) {
    alarm_.Set(server->queue(), absl::ToChronoTime(absl::Now()), this);
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
    alarm_.Set(server_->queue(), absl::ToChronoTime(absl::Now()), this);
  }
  void Run(bool) override {
    server_->is_stopping_ = true;
    for (auto& timer : server_->timers_) timer->Close();
    for (auto& wakeup : server_->wakeups_) wakeup->Close();
    server_->queue_->Shutdown();
  }

 private:
  RpcServer* const server_;
  grpc::Alarm alarm_;
};

RpcServer::RpcServer() = default;

RpcServer::~RpcServer() { Shutdown(absl::ZeroDuration()); }

Timer* RpcServer::AddTimer(absl::Duration period,
                           std::function<void()> action) {
  timers_.push_back(std::make_unique<Timer>(period, std::move(action)));
  return timers_.back().get();
}

Wakeup* RpcServer::AddWakeup(std::function<void()> action) {
  wakeups_.push_back(std::make_unique<Wakeup>(std::move(action)));
  return wakeups_.back().get();
}

void RpcServer::StartCall(std::unique_ptr<Event> call) {
  (*calls_.insert(std::move(call)).first)->Run(true);
}

absl::Status RpcServer::Start(const Config& config) {
  slow_call_ = config.slow_call;
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // gRPC's own health service brings threads that poll our connections and
  // hand each event over: HealthService does the same on our queue.
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  ports_.resize(config.addresses.size());
  for (size_t i = 0; i < config.addresses.size(); ++i) {
    builder.AddListeningPort(config.addresses[i],
                             grpc::InsecureServerCredentials(), &ports_[i]);
  }
  // A second server on the same port must fail, not share its connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Finds out when the host of a TCP peer is gone.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             config.max_calls_per_connection);
  builder.SetMaxReceiveMessageSize(config.max_receive_bytes);
  builder.SetMaxSendMessageSize(-1);
  for (grpc::Service* service : services_) builder.RegisterService(service);
  queue_ = builder.AddCompletionQueue();
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", absl::StrJoin(config.addresses, " and "),
        ": is the address free and the folder writable?"));
  }
  for (const auto& call : calls_) call->Run(true);
  for (auto& timer : timers_) timer->Open(queue_.get());
  for (auto& wakeup : wakeups_) wakeup->Open(queue_.get());
  thread_ = std::thread([this] { Poll(); });
  return absl::OkStatus();
}

void RpcServer::Poll() {
  pthread_setname_np(pthread_self(), "polling");
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Event*>(tag)->Run(ok);
}

void RpcServer::RunOnPollingThread(std::function<void()> action) {
  Errand errand(this, std::move(action));
  errand.Wait();
}

void RpcServer::Shutdown(absl::Duration grace) {
  if (server_ == nullptr) return;
  is_ending_ = true;
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  Stop stop(this);
  thread_.join();
  server_.reset();
}

}  // namespace pando
