#ifndef PANDO_EVENTS_EVENT_PUBLISHER_H_
#define PANDO_EVENTS_EVENT_PUBLISHER_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/prefix_cache.h"
#include "events/cached_pages.h"
#include "events/event_sink.h"
#include "os/stop_signal.h"

namespace pando {

// Takes the cache's raw events, hashes the pages and calls the sinks. It does
// so on a thread of its own, so no call of the cache waits for it. The thread
// sleeps until Start. Then it asks the sinks after each turn whether they
// listen: every 2 ms, or every 20 ms while none does. Meanwhile no event is
// kept or hashed. Owned by EventsService.
class EventPublisher {
 public:
  // `cache` and `sinks` must outlive this object.
  EventPublisher(PrefixCache* cache, std::vector<EventSink*> sinks);
  ~EventPublisher();

  // Must be called before a sink may listen. Idempotent; not thread-safe.
  void Start();

 private:
  void Run();
  void StartFollowing();
  void StopFollowing();
  // Calls the sinks for all new events. Returns whether any of them listens
  // from now on.
  bool TakeTurn();
  void Publish(const RawEvent& event);

  PrefixCache* const cache_;
  const std::vector<EventSink*> sinks_;
  // Only the thread uses these.
  std::vector<RawEvent> raw_;
  std::unique_ptr<CachedPages> pages_;  // null while no sink listens
  absl::Notification start_;
  StopSignal stop_;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_EVENT_PUBLISHER_H_
