#include "service/events/events_service.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <vector>

#include "service/events/event_watch.h"
#include "service/rpc/grpc_status.h"

namespace pando {
namespace {

// Beside the number of events: what they may take together.
constexpr size_t kMaxHistoryBytes = size_t{128} << 20;

std::vector<EventSink*> SinksOf(EventSink* watchers, EventSink* routers) {
  std::vector<EventSink*> sinks = {watchers};
  if (routers != nullptr) sinks.push_back(routers);
  return sinks;
}

}  // namespace

EventsService::EventsService(PrefixCache* cache, RpcServer* server,
                             uint64_t epoch, uint32_t history_events,
                             EventSink* routers)
    : server_(server),
      epoch_(epoch),
      feed_({.events = history_events, .bytes = kMaxHistoryBytes},
            [wakeup = server->AddWakeup([this] { watches_->Resume(); })] {
              wakeup->Request();
            }),
      publisher_(cache, SinksOf(&feed_, routers)) {
  if (routers != nullptr) publisher_.Start();
}

void EventsService::Register(RpcMetrics& metrics) {
  server_->AddService(&grpc_);
  watches_ = std::make_unique<Watches>(
      server_, [this](auto... call) { grpc_.RequestWatch(call...); },
      [this](const grpc::ByteBuffer& bytes) { return Watch(bytes); },
      metrics.ForMethod(v1::Events::service_full_name(), "Watch",
                        "server_stream"));
}

absl::StatusOr<std::unique_ptr<EventsService::Source>> EventsService::Watch(
    const grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer copy = bytes;
  v1::WatchRequest request;
  if (!grpc::SerializationTraits<v1::WatchRequest>::Deserialize(&copy, &request)
           .ok()) {
    return absl::InternalError("the request is no WatchRequest");
  }
  feed_.Start();
  publisher_.Start();
  return std::make_unique<EventWatch>(request, epoch_, &feed_.history());
}

}  // namespace pando
