#include "service/watches/events_service.h"

#include <vector>

#include "service/watches/event_watch.h"

namespace pando {
namespace {

// The most bytes that the kept events may have together, whatever their number.
constexpr size_t kMaxHistoryBytes = size_t{128} << 20;

std::vector<EventSink*> WithWatchers(std::vector<EventSink*> sinks,
                                     EventSink* watchers) {
  sinks.push_back(watchers);
  return sinks;
}

}  // namespace

EventsService::EventsService(PrefixCache* cache, RpcServer* server,
                             uint64_t epoch, uint32_t history_events,
                             std::vector<EventSink*> others)
    : server_(server),
      epoch_(epoch),
      feed_({.events = history_events, .bytes = kMaxHistoryBytes},
            [wakeup = server->AddWakeup([this] { watches_->Resume(); })] {
              wakeup->Request();
            }),
      publisher_(cache, WithWatchers(others, &feed_)) {
  if (!others.empty()) publisher_.Start();
}

void EventsService::Register(RpcMetrics& metrics) {
  server_->AddService(&grpc_);
  watches_ = std::make_unique<Watches>(
      server_, grpc_.Method("Watch"),
      [this](const v1::WatchRequest& request) { return Watch(request); },
      metrics.ForMethod(v1::Events::service_full_name(), "Watch",
                        "server_stream"));
}

absl::StatusOr<std::unique_ptr<EventsService::Source>> EventsService::Watch(
    const v1::WatchRequest& request) {
  feed_.Start();
  publisher_.Start();
  return std::make_unique<EventWatch>(request, epoch_, &feed_.history());
}

}  // namespace pando
