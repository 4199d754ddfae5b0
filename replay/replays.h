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

// On a cache in this process.
absl::StatusOr<Report> ReplayInProcess(const Options& options,
                                       const Trace& trace,
                                       const std::string& policy,
                                       uint64_t pool_tokens);

// Is told now and then how many requests are admitted.
using OnProgress = std::function<void(uint64_t requests)>;

// Through client processes against a pandod, with the first policy and pool of
// the options. Once in a process: it forks, and uses gRPC then.
absl::StatusOr<Report> ReplayThroughPandod(
    const Options& options, const Trace& trace,
    const OnProgress& on_progress = [](uint64_t) {});

}  // namespace pando::replay

#endif  // PANDO_REPLAY_REPLAYS_H_
