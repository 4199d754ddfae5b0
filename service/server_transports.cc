// The parts of Server that callers reach: the memory socket, lanes, gRPC, HTTP.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/operators/gauges.h"
#include "os/fair_mutex.h"
#include "service/metrics/collector.h"
#include "service/options/option_checks.h"
#include "service/request_size.h"
#include "service/security/tls_credentials.h"
#include "service/server.h"

namespace pando {
namespace {

PoolFigures FiguresOf(const KvPool& pool, const Options& options,
                      uint64_t page_bytes) {
  PoolFigures figures = {.page_bytes = page_bytes,
                         .page_tokens = options.page_tokens,
                         .shards = static_cast<uint32_t>(pool.shards().size()),
                         .device = pool.shards().front().device,
                         .dtype = std::string(DTypeName(pool.layout().dtype)),
                         .layout = options.is_open ? "open" : "none",
                         .model = options.model};
  if (!options.has_pool) return figures;
  figures.layout = LayoutOrderName(options.layout_order);
  figures.layers = pool.layout().layers;
  if (pool.layout().dtype == DType::kOpaque) return figures;
  figures.heads = pool.layout().heads;
  figures.head_size = pool.layout().head_size;
  return figures;
}

// If an address is taken, adds to the error which option chooses another one.
absl::Status WithOption(const absl::Status& status, absl::string_view option) {
  if (!absl::IsAlreadyExists(status) && !absl::IsUnavailable(status)) {
    return status;
  }
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), "; choose another with ", option));
}

}  // namespace

UnixSocket Server::SocketAt(const std::string& path,
                            std::string kept_name) const {
  return {path, options_.socket_mode, socket_group_, kept_,
          std::move(kept_name)};
}

absl::Status Server::StartMemorySocket() {
  ASSIGN_OR_RETURN(attachments_,
                   Attachments::Start(&cache_, pool_.get(), block_memory_.get(),
                                      earlier_writers_->last()));
  absl::StatusOr<std::unique_ptr<MemorySocket>> memory = MemorySocket::Start(
      {.socket = SocketAt(options_.memory_socket, "listen-memory"),
       .filter = &peer_filter_,
       .token_ttl = options_.attach_token_ttl,
       .max_tokens_per_session = options_.max_attach_tokens_per_session},
      [this](const AttachGrant& grant, const UnixPeer& peer) {
        return grant.what == AttachGrant::What::kLane
                   ? OpenLane(grant, peer)
                   : attachments_->Attach(grant, peer.pid);
      });
  if (!memory.ok()) {
    return WithOption(memory.status(), "--socket or --memory-socket");
  }
  memory_ = *std::move(memory);
  return absl::OkStatus();
}

absl::Status Server::StartLanes() {
  policy_.Configure(
      {.access = access_.get(),
       .is_live = [this](SessionId session) { return IsLive(session); },
       .no_pages =
           open_pool_ == nullptr ? absl::OkStatus() : OpenPool::HasNoPages(),
       .slow_call = options_.slow_call,
       .after_handler = [this] { ShowGauges(); }});
  if (options_.lane_bytes == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(gauges_, GaugeBoard::Create());
  ShowGauges();
  const LaneServer::Config config = {
      .arena_bytes = options_.lane_bytes,
      .max_lanes = options_.max_lanes,
      .slots = std::min(options_.max_calls_per_connection, lane::kSlots),
      .max_request_bytes = static_cast<uint32_t>(MaxReceiveBytes(options_)),
      .spin = options_.lane_spin};
  ASSIGN_OR_RETURN(
      lanes_, LaneServer::Start(config, &policy_, data_path_, rpc_metrics_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SharedDescriptor>> Server::OpenLane(
    const AttachGrant& grant, const UnixPeer& peer) {
  ASSIGN_OR_RETURN(UniqueFd gauges, gauges_->Share());
  ASSIGN_OR_RETURN(LaneDescriptors lane,
                   lanes_->Open({.session = grant.session,
                                 .process = peer,
                                 .authorization = grant.authorization}));
  // The session may have ended, and been forgotten, before the lane was open.
  if (!IsLive(grant.session)) {
    lanes_->Close(grant.session);
    return absl::FailedPreconditionError("the session has ended");
  }
  std::vector<SharedDescriptor> shared;
  shared.push_back({std::move(lane.memory), lane.memory_bytes});
  shared.push_back({std::move(lane.doorbell), 0});
  shared.push_back({std::move(gauges), lane::kGaugePageBytes});
  return shared;
}

void Server::ShowGauges() {
  if (gauges_ == nullptr) return;
  const CacheGauges now = cache_.Run(GaugeReading()).result();
  lane::Gauges shown = {.epoch = run_,
                        .free = now.pages.free,
                        .evictable = now.pages.evictable,
                        .protected_pages = now.pages.protected_,
                        .reserved = now.pages.reserved,
                        .quarantined = now.pages.quarantined,
                        .capacity = now.pages.capacity,
                        .draining = is_draining_ ? 1u : 0u};
  const std::string_view policy = EvictionPolicyName(now.eviction_policy);
  policy.copy(shown.policy.data(), shown.policy.size());
  gauges_->Show(shown);
}

absl::Status Server::StartRpc() {
  RpcServer::Config config;
  config.socket = SocketAt(options_.socket, "listen-grpc");
  config.filter = &peer_filter_;
  config.tcp = {options_.tcp, kept_, "listen-tcp"};
  if (!options_.tls_certificate.empty()) {
    ASSIGN_OR_RETURN(
        auto credentials,
        MakeTlsCredentials({options_.tls_certificate, options_.tls_key,
                            options_.tls_client_ca}));
    config.tcp_credentials = std::move(credentials);
  }
  config.max_calls_per_connection =
      static_cast<int>(options_.max_calls_per_connection);
  config.max_receive_bytes = MaxReceiveBytes(options_);
  const absl::Status started = rpc_.Start(config);
  return WithOption(started,
                    absl::IsAlreadyExists(started) ? "--socket" : "--tcp");
}

absl::Status Server::StartHttp() {
  if (options_.http.empty()) return absl::OkStatus();
  regret_ = std::make_unique<RegretMeter>(&cache_);
  HttpServer::Config config{
      .socket = {options_.http, kept_, "listen-http"},
      .hosts = options_.http_hosts,
      .collectables = {std::make_shared<MetricsCollector>(
          MetricsCollector::Sources{
              .cache = &cache_,
              .blocks = &blocks_,
              .self_check = &self_check_,
              .verifier = verifier_.get(),
              .regret = regret_.get(),
              .pending_matches = &pending_matches_,
              .events = events_service_.get(),
              .kv_events = kv_events_.get(),
              .tiers = tiers_.get(),
              .block_tier = block_tier_.get(),
              .rpc = &rpc_metrics_,
              .lanes = lanes_.get(),
              .peers = &peer_filter_,
              .is_draining = &is_draining_,
              .pool = FiguresOf(*pool_, options_, PageBytesOfAllShards())})},
      .is_ready = [this] { return !is_draining_; }};
  if (options_.console) {
    MakeConsole();
    config.console = [this](const auto& in) { return console_->Answer(in); };
    config.max_body_bytes = console_->max_body_bytes();
    if (access_ != nullptr) {
      config.admits = [this](const std::string& token) {
        static const Permission needed =
            PermissionFor(v1::Admin::service_full_name(), "ExplainMatch");
        return access_->AdmitsToken(needed, token);
      };
    }
  }
  absl::StatusOr<std::unique_ptr<HttpServer>> http =
      HttpServer::Start(std::move(config));
  if (!http.ok()) return WithOption(http.status(), "--http");
  http_ = *std::move(http);
  if (options_.console) {
    // With port 0 in the option, only the server knows the port.
    const std::string host = options_.http.substr(0, options_.http.rfind(':'));
    FairMutexLock turn(&policy_.turn().mutex());
    admin_service_->set_console_url(
        absl::StrCat("http://", host, ":", http_->port(), "/console/"));
  }
  return absl::OkStatus();
}

void Server::MakeConsole() {
  console_ = std::make_unique<Console>(Console::Config{
      .cache = &cache_,
      .blocks = block_memory_ != nullptr ? &blocks_ : nullptr,
      .tiers = tiers_.get(),
      .rpc = &rpc_metrics_,
      .is_draining = &is_draining_,
      .explain =
          [this](const auto& request, auto& response) {
            return admin_service_->ExplainMatchBlocking(request, response);
          },
      .max_tokens = options_.max_tokens_per_request,
      .page_bytes = PageBytesOfAllShards(),
      .model = options_.model,
      .is_open = open_pool_ != nullptr,
      .layout = options_.has_pool ? &pool_->layout() : nullptr,
      .shows_tokens = options_.console_show_tokens,
      .explains_fully = access_ != nullptr});
}

}  // namespace pando
