// The two ways to replay a trace.
#ifndef PANDO_REPLAY_REPLAYS_H_
#define PANDO_REPLAY_REPLAYS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "replay/options.h"
#include "replay/report.h"
#include "replay/trace.h"

namespace pando::replay {

// Replays the trace on a new cache in this process, with one worker.
absl::StatusOr<Report> ReplayInProcess(const Options& options,
                                       const Trace& trace,
                                       const std::string& policy,
                                       uint64_t pool_tokens);

// A function that is called periodically with the number of admissions so far.
using OnProgress = std::function<void(uint64_t requests)>;

// Replays the trace through a pandod, with Options::clients worker processes,
// and with the first policy and pool size of the options. May be called only
// once in a process, because it forks and then uses gRPC.
absl::StatusOr<Report> ReplayThroughPandod(
    const Options& options, const Trace& trace,
    const OnProgress& on_progress = [](uint64_t) {});

}  // namespace pando::replay

#endif  // PANDO_REPLAY_REPLAYS_H_
