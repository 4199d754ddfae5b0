#ifndef PANDO_EVENTS_EVENT_SINK_H_
#define PANDO_EVENTS_EVENT_SINK_H_

#include <span>

#include "base/ids.h"
#include "core/requests/eviction_reason.h"
#include "events/cached_pages.h"

namespace pando {

// Learns what enters and leaves the cache, and passes it on in a form of its
// own. EventPublisher makes all calls, on its thread, in the order of the
// events.
class EventSink {
 public:
  virtual ~EventSink() = default;

  // The pages of `run`, which follow one another in one prompt, have been
  // cached.
  virtual void Stored(const CachedPages& pages,
                      std::span<const PageId> run) = 0;
  // The pages of `removed` have left the cache; `pages` still knows them.
  virtual void Removed(const CachedPages& pages,
                       std::span<const PageId> removed,
                       EvictionReason reason) = 0;
  // The page `last` and all pages before it in its prompt were hit. Called only
  // if the cache reports hits.
  virtual void Hit(const CachedPages&, PageId /*last*/) {}
  // Nothing is cached any more.
  virtual void Cleared() = 0;
  // Called every few milliseconds (less often while no sink listens), after the
  // events of that time. `pages` knows all that is cached; it is null if no
  // sink listened, because nothing is known then. Returns whether this sink
  // listens. If it does, it is called for the events that follow, and `pages`
  // is not null at the end of the next turn.
  virtual bool EndTurn(const CachedPages* pages) = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_EVENT_SINK_H_
