#ifndef PANDO_SERVICE_START_KV_EVENTS_H_
#define PANDO_SERVICE_START_KV_EVENTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "events/routers/kv_events.h"
#include "service/options/options.h"

namespace pando {

// Starts the stream of events for routers that kv-events and the options beside
// it describe. An error names the option at fault, and why. REQUIRES: kv-events
// is not empty.
absl::StatusOr<std::unique_ptr<KvEvents>> StartKvEvents(const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_START_KV_EVENTS_H_
