#ifndef PANDO_SERVICE_WATCHES_EVENTS_SERVICE_H_
#define PANDO_SERVICE_WATCHES_EVENTS_SERVICE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/prefix_cache.h"
#include "events/event_publisher.h"
#include "pando/v1/events.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/rpc/async_service.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/server_stream.h"
#include "service/watches/event_feed.h"

namespace pando {

// The handlers of pando.v1.Events: they stream to watchers what the publisher
// publishes. Owned by Server; lives on the polling thread.
class EventsService {
 public:
  // All pointers outlive the service. The last `history_events` events are kept
  // for watchers that fall behind or come back. `others` get the same events,
  // even when there are no watchers.
  EventsService(PrefixCache* cache, RpcServer* server, uint64_t epoch,
                uint32_t history_events, std::vector<EventSink*> others);

  // Serves its method over gRPC. To be called before the server starts.
  void Register(RpcMetrics& metrics);

  // Ends the watches of callers who may not watch any more.
  void EndIfNotAdmitted() { watches_->EndIfNotAdmitted(); }

  // Returns how many events watchers were told they lost. Thread-safe.
  uint64_t dropped_events() const { return feed_.history().lost_events(); }

 private:
  using Source = StreamSource<grpc::ByteBuffer>;
  // The messages are bytes, because events are encoded once for all watchers.
  using Watches = StreamMethod<v1::WatchRequest, grpc::ByteBuffer>;

  absl::StatusOr<std::unique_ptr<Source>> Watch(
      const v1::WatchRequest& request);

  RpcServer* const server_;
  const uint64_t epoch_;
  AsyncService<v1::Events> grpc_;
  std::unique_ptr<Watches> watches_;
  EventFeed feed_;
  EventPublisher publisher_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_WATCHES_EVENTS_SERVICE_H_
