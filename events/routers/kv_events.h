#ifndef PANDO_EVENTS_ROUTERS_KV_EVENTS_H_
#define PANDO_EVENTS_ROUTERS_KV_EVENTS_H_

#include "events/event_sink.h"
#include "events/routers/kv_event_figures.h"
#include "events/tier_changes.h"

namespace pando {

// Tells routers on other machines over ZMQ what is cached here, in the form
// that vLLM and SGLang use (docs/fleet.md). Owned by Server; the calls of a
// sink come from the publisher's thread, which ends before this object does.
class KvEvents : public EventSink {
 public:
  // Also reports what is in the tiers of this machine; a pointer is null if
  // there is no such tier. Must be called before the publisher starts. The
  // tiers must outlive the publisher.
  virtual void FollowTiers(TierChanges* host, TierChanges* disk) = 0;
  // Thread-safe.
  virtual KvEventFigures figures() const = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_KV_EVENTS_H_
