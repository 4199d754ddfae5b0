#ifndef PANDO_EVENTS_EVENT_SINK_H_
#define PANDO_EVENTS_EVENT_SINK_H_

#include <span>

#include "base/ids.h"
#include "core/requests/eviction_reason.h"
#include "events/cached_pages.h"

namespace pando {

// Is told what enters and leaves the cache, and passes it on in a form of its
// own. All calls come from the publisher's thread, in the order of the events.
class EventSink {
 public:
  virtual ~EventSink() = default;

  // `run` has been cached: pages that follow one another in one prompt.
  virtual void Stored(const CachedPages& pages,
                      std::span<const PageId> run) = 0;
  // `removed` are about to leave; `pages` still knows them.
  virtual void Removed(const CachedPages& pages,
                       std::span<const PageId> removed,
                       EvictionReason reason) = 0;
  // `last` and the pages before it were hit, if the cache tells of hits.
  virtual void Hit(const CachedPages&, PageId /*last*/) {}
  // Nothing is cached any more.
  virtual void Cleared() = 0;
  // Is called every few milliseconds, after the events of that time. `pages` is
  // all that is cached; null where no sink listened, so that it is not known.
  // Returns whether this sink listens: then it is told what happens next, and
  // `pages` is there at the end of the next turn.
  virtual bool EndTurn(const CachedPages* pages) = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_EVENT_SINK_H_
