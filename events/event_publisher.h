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

// Takes the cache's raw events, hashes the pages and tells the sinks, on a
// thread of its own: no call waits for it. The thread sleeps until Start. Then
// it asks the sinks now and again whether they listen; while none does, no
// event is kept or hashed. Owned by EventsService.
class EventPublisher {
 public:
  // All outlive this.
  EventPublisher(PrefixCache* cache, std::vector<EventSink*> sinks);
  ~EventPublisher();

  // A sink may listen from now on. Idempotent; not thread-safe.
  void Start();

 private:
  void Run();
  void StartFollowing();
  void StopFollowing();
  // Tells the sinks what has happened; false if none listens from now on.
  bool TakeTurn();
  void Publish(const RawEvent& event);

  PrefixCache* const cache_;
  const std::vector<EventSink*> sinks_;
  // The thread's alone.
  std::vector<RawEvent> raw_;
  std::unique_ptr<CachedPages> pages_;  // null: no sink listens
  absl::Notification start_;
  StopSignal stop_;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_EVENT_PUBLISHER_H_
