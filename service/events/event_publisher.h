#ifndef PANDO_SERVICE_EVENTS_EVENT_PUBLISHER_H_
#define PANDO_SERVICE_EVENTS_EVENT_PUBLISHER_H_

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/prefix_cache.h"
#include "service/events/cached_pages.h"
#include "service/events/event_history.h"
#include "service/process/stop_signal.h"

namespace pando {

// Takes the cache's raw events, hashes and numbers them and puts them into the
// history, on a thread of its own: nobody waits for it. The thread sleeps until
// the first watcher comes, so that a watch needs none that cannot be had; then
// it goes on to the end. Owned by EventsService; the history is thread-safe.
class EventPublisher {
 public:
  // `cache` outlives this. `on_news` is called from the thread after there are
  // new events, or a snapshot.
  EventPublisher(PrefixCache* cache, EventHistory::Limits limits,
                 std::function<void()> on_news);
  ~EventPublisher();

  // There is a watcher. Idempotent; not thread-safe.
  void Start();

  EventHistory& history() { return history_; }
  const EventHistory& history() const { return history_; }

 private:
  void Run();
  // False when there was nothing to do.
  bool Publish(const std::vector<RawEvent>& raw);
  bool MakeSnapshot();

  PrefixCache* const cache_;
  const std::function<void()> on_news_;
  EventHistory history_;
  std::unique_ptr<CachedPages> pages_;  // the thread's alone
  absl::Notification start_;
  StopSignal stop_;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_EVENTS_EVENT_PUBLISHER_H_
