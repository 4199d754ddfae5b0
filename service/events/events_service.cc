#include "service/events/events_service.h"

#include "service/events/event_watch.h"

namespace pando {
namespace {

// Beside the number of events: what they may take together.
constexpr size_t kMaxHistoryBytes = size_t{128} << 20;

}  // namespace

EventsService::EventsService(PrefixCache* cache, RpcServer* server,
                             uint64_t epoch, uint32_t history_events)
    : server_(server),
      epoch_(epoch),
      publisher_(cache, {.events = history_events, .bytes = kMaxHistoryBytes},
                 [wakeup = server->AddWakeup([this] { watches_->Resume(); })] {
                   wakeup->Request();
                 }) {}

void EventsService::Register(RpcMetrics& metrics) {
  server_->AddService(&grpc_);
  watches_ = std::make_unique<Watches>(
      server_, grpc_.ServerStream<grpc::ByteBuffer>("Watch"),
      [this](const v1::WatchRequest& request) { return Watch(request); },
      metrics.ForMethod(v1::Events::service_full_name(), "Watch",
                        "server_stream"));
}

absl::StatusOr<std::unique_ptr<EventsService::Source>> EventsService::Watch(
    const v1::WatchRequest& request) {
  publisher_.Start();
  return std::make_unique<EventWatch>(request, epoch_, &publisher_.history());
}

}  // namespace pando
