#ifndef PANDO_SERVICE_WATCHES_EVENT_MESSAGES_H_
#define PANDO_SERVICE_WATCHES_EVENT_MESSAGES_H_

#include <cstddef>
#include <functional>
#include <span>

#include "base/ids.h"
#include "core/requests/eviction_reason.h"
#include "events/cached_pages.h"
#include "pando/v1/events.pb.h"

namespace pando {

// Makes events of pando.v1.Events, each of a bounded size, from what enters and
// leaves the cache. Owned by EventFeed; not thread-safe.
class EventMessages {
 public:
  // Called with an event that has no number yet; the event is reused
  // afterwards.
  using Emit = std::function<void(v1::Event& event)>;

  // Emits the events for `run`: cached pages that follow one another in one
  // prompt.
  void Stored(const CachedPages& pages, std::span<const PageId> run,
              const Emit& emit);
  // Emits the events for pages that were removed from the cache. REQUIRES:
  // `pages` still has them.
  void Removed(const CachedPages& pages, std::span<const PageId> removed,
               EvictionReason reason, const Emit& emit);

 private:
  v1::Event event_;  // scratch
};

}  // namespace pando

#endif  // PANDO_SERVICE_WATCHES_EVENT_MESSAGES_H_
