#ifndef PANDO_SERVICE_WATCHES_EVENT_FEED_H_
#define PANDO_SERVICE_WATCHES_EVENT_FEED_H_

#include <atomic>
#include <functional>

#include "events/event_sink.h"
#include "service/watches/event_history.h"
#include "service/watches/event_messages.h"

namespace pando {

// Numbers the events for the watchers of pando.v1.Events and puts them into the
// history, once the first watcher has come. Owned by EventsService. Start and
// the history are thread-safe; the other members are for the publisher's
// thread.
class EventFeed : public EventSink {
 public:
  // `on_news` is called on the publisher's thread when there are new events, or
  // a snapshot is ready.
  EventFeed(EventHistory::Limits limits, std::function<void()> on_news);

  // Begins to keep events, because there is a watcher. Idempotent.
  void Start() { is_wanted_ = true; }

  EventHistory& history() { return history_; }
  const EventHistory& history() const { return history_; }

  void Stored(const CachedPages& pages, std::span<const PageId> run) override;
  void Removed(const CachedPages& pages, std::span<const PageId> removed,
               EvictionReason reason) override;
  void Cleared() override;
  bool EndTurn(const CachedPages* pages) override;

 private:
  void Publish(v1::Event& event);
  // Begins the history with everything that is cached.
  void Begin(const CachedPages& pages);
  // Makes the snapshot that watchers wait for. Returns false if none waits.
  bool MakeSnapshot(const CachedPages& pages);

  const std::function<void()> on_news_;
  EventHistory history_;
  std::atomic<bool> is_wanted_ = false;
  bool is_on_ = false;
  bool has_news_ = false;
  EventMessages messages_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_WATCHES_EVENT_FEED_H_
