#include "service/handlers/health_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "service/rpc/grpc_status.h"
#include "service/rpc/parse_request.h"
#include "service/rpc/step.h"
#include "service/rpc/transit.h"
#include "service/rpc/unary_call.h"

namespace pando {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;

namespace {

constexpr const char* kLiveness = "liveness";
// The most watches. More are refused, because a watch lasts as long as its
// caller likes.
constexpr size_t kMaxWatches = 1024;

absl::flat_hash_set<std::string> AllNames(
    const std::vector<std::string>& services) {
  absl::flat_hash_set<std::string> names(services.begin(), services.end());
  names.insert({"", kLiveness, "readiness"});
  return names;
}

}  // namespace

// One Watch call. Owned by HealthService, which it asks to delete it when its
// last operation is done. Lives on the polling thread.
class HealthWatch {
 public:
  explicit HealthWatch(HealthService* service)
      : service_(service),
        call_(&context_),
        transit_(service->server_, [this](bool ok) { OnRead(ok); }) {}

  void Arm() {
    context_.AsyncNotifyWhenDone(&on_done_);
    service_->arm_watch_(&context_, &call_, service_->server_->queue(),
                         &on_arrived_);
  }

  // Sends the present status. If a write is under way, the status follows it.
  void SendStatus() {
    has_unsent_status_ = is_writing_;
    if (is_writing_ || is_done_ || service_->server_->is_stopping()) return;
    response_.set_status(is_served_ ? service_->StatusOf(name_)
                                    : HealthService::Response::SERVICE_UNKNOWN);
    ++operations_;
    is_writing_ = true;
    call_.Write(response_, &on_written_);
  }

  bool is_read() const { return is_read_; }

 private:
  void OnArrived(bool ok) {
    if (!ok) {  // the server stops; there will be no OnDone either
      service_->Remove(this);
      return;
    }
    operations_ = 2;  // OnDone and OnRead
    service_->Arm();
    transit_.Begin(context_, &call_, &bytes_);
  }

  void OnRead(bool ok) {
    if (!is_done_) Start(ok);
    transit_.Leave();
    OperationDone();
  }

  void Start(bool has_request) {
    if (!has_request) {
      return Refuse(absl::InternalError("the call ended before its request"));
    }
    if (service_->read_watches_ == kMaxWatches) {
      return Refuse(absl::ResourceExhaustedError(absl::StrCat(
          kMaxWatches, " callers watch the health of this server already")));
    }
    ++service_->read_watches_;
    is_read_ = true;
    // A caller may send a long name and never leave. So only names that are
    // served are kept.
    HealthCheckRequest request;
    if (ParseRequest(bytes_, request).ok() &&
        service_->services_.contains(request.service())) {
      is_served_ = true;
      name_ = request.service();
    }
    SendStatus();
  }

  void Refuse(const absl::Status& status) {
    if (service_->server_->is_stopping()) return;
    is_done_ = true;
    ++operations_;
    call_.Finish(ToGrpcStatus(status), &on_finished_);
  }

  void OnWritten(bool ok) {
    is_writing_ = false;
    if (ok && has_unsent_status_) SendStatus();
    OperationDone();
  }

  // The watcher has left, or the watch was refused.
  void OnDone() {
    is_done_ = true;
    transit_.CallIsOver();
    OperationDone();
  }

  void OperationDone() {
    if (--operations_ > 0) return;
    if (is_read_) --service_->read_watches_;
    service_->Remove(this);
  }

  HealthService* const service_;
  grpc::ServerContext context_;
  AsyncCall<HealthService::Response> call_;
  Transit transit_;
  grpc::ByteBuffer bytes_;  // the request, until it is parsed
  std::string name_;        // the service's, if it is served
  HealthService::Response response_;
  int operations_ = 0;  // those that have not completed
  bool is_read_ = false;
  bool is_served_ = false;
  bool is_writing_ = false;
  bool has_unsent_status_ = false;
  bool is_done_ = false;

  Step on_arrived_{[this](bool ok) { OnArrived(ok); }};
  Step on_written_{[this](bool ok) { OnWritten(ok); }};
  Step on_finished_{[this](bool) { OperationDone(); }};
  Step on_done_{[this](bool) { OnDone(); }};
};

HealthService::HealthService(RpcServer* server,
                             const std::atomic<bool>* is_draining,
                             const std::vector<std::string>& services)
    : server_(server),
      is_draining_(is_draining),
      services_(AllNames(services)),
      arm_watch_(grpc_.Method("Watch")) {}

HealthService::~HealthService() = default;

void HealthService::Register(RpcMetrics& metrics) {
  server_->AddService(&grpc_);
  ServeMethod(
      *server_, grpc_, metrics,
      MakeMethod<HealthCheckRequest, Response>(
          Health::service_full_name(), "Check",
          [this](const auto& in, auto& out) { return Check(in, out); }));
  server_->AddCall(std::make_unique<Step>([this](bool) { Arm(); }));
}

void HealthService::AnnounceDrain() {
  if (std::exchange(drain_announced_, true)) return;
  for (const auto& [watch, owned] : watches_) {
    if (watch->is_read()) watch->SendStatus();
  }
}

HealthService::Response::ServingStatus HealthService::StatusOf(
    const std::string& service) const {
  if (!services_.contains(service)) return Response::SERVICE_UNKNOWN;
  const bool is_draining = is_draining_->load(std::memory_order_relaxed);
  return is_draining && service != kLiveness ? Response::NOT_SERVING
                                             : Response::SERVING;
}

absl::Status HealthService::Check(const HealthCheckRequest& request,
                                  Response& response) const {
  response.set_status(StatusOf(request.service()));
  if (response.status() != Response::SERVICE_UNKNOWN) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("service \"", request.service(), "\" is not served here"));
}

void HealthService::Arm() {
  if (server_->is_stopping()) return;
  auto watch = std::make_unique<HealthWatch>(this);
  HealthWatch* armed = watch.get();
  watches_.emplace(armed, std::move(watch));
  armed->Arm();
}

void HealthService::Remove(HealthWatch* watch) { watches_.erase(watch); }

}  // namespace pando
