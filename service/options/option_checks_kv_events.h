#ifndef PANDO_SERVICE_OPTIONS_OPTION_CHECKS_KV_EVENTS_H_
#define PANDO_SERVICE_OPTIONS_OPTION_CHECKS_KV_EVENTS_H_

#include "absl/status/status.h"
#include "service/options/options.h"

namespace pando {

// Checks kv-events and its companions against each other, and completes
// kv-events-block-tokens.
absl::Status CompleteKvEvents(Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_CHECKS_KV_EVENTS_H_
