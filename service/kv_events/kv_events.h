#ifndef PANDO_SERVICE_KV_EVENTS_KV_EVENTS_H_
#define PANDO_SERVICE_KV_EVENTS_KV_EVENTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "service/events/event_sink.h"
#include "service/events/tier_changes.h"
#include "service/kv_events/kv_event_figures.h"
#include "service/options/options.h"

namespace pando {

// Tells routers on other machines over ZMQ what is cached here, in the form
// that vLLM and SGLang use (docs/fleet.md). Owned by Server; the calls of a
// sink come from the publisher's thread, which ends before this object does.
class KvEvents : public EventSink {
 public:
  // Tells of what is in the tiers of this machine, too; null: there is no such
  // tier. Must be called before the publisher starts. They outlive the
  // publisher.
  virtual void FollowTiers(TierChanges* host, TierChanges* disk) = 0;
  // Thread-safe.
  virtual KvEventFigures figures() const = 0;
};

// Starts the stream that the options kv-events and its companions describe. An
// error names the option at fault, and why. REQUIRES: kv-events is not empty.
absl::StatusOr<std::unique_ptr<KvEvents>> StartKvEvents(const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_KV_EVENTS_H_
