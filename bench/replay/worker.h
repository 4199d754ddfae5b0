// What one worker does with its share of a trace.
#ifndef PANDO_BENCH_REPLAY_WORKER_H_
#define PANDO_BENCH_REPLAY_WORKER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/replay/trace.h"
#include "pando/client.h"

namespace pando::replay {

struct WorkerOptions {
  // This worker serves the requests index, index + count, index + 2 count ...
  uint32_t index = 0;
  uint32_t count = 1;
  // Reserve room for the output, too.
  bool with_output = false;
};

// The time of a request's calls, as the worker waited for them.
struct CallTimes {
  uint32_t match_ns = 0;
  // Zero: not called, for the pool was exhausted.
  uint32_t insert_ns = 0;
};

struct WorkerResult {
  uint64_t input_tokens = 0;
  uint64_t matched_tokens = 0;
  // Requests that found too few pages.
  uint64_t exhausted = 0;
  // On the monotonic clock of the machine.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // One for each request served, in order.
  std::vector<CallTimes> calls;
};

// Serves the share as an engine would: one MatchPrefix admits a request, one
// Insert finishes it. Fails at the first error other than an exhausted pool.
absl::StatusOr<WorkerResult> Serve(Client& client,
                                   const std::vector<TraceRequest>& trace,
                                   const WorkerOptions& options);

}  // namespace pando::replay

#endif  // PANDO_BENCH_REPLAY_WORKER_H_
