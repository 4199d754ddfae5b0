// A worker, which replays its share of a trace.
#ifndef PANDO_REPLAY_WORKER_H_
#define PANDO_REPLAY_WORKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "replay/cache_calls.h"
#include "replay/floor.h"
#include "replay/trace.h"

namespace pando::replay {

struct WorkerOptions {
  // This worker serves the requests index, index + count, index + 2 count ...
  uint32_t index = 0;
  uint32_t count = 1;
  // Whether to reserve room for the output, too.
  bool with_output = false;
  // Whether to begin at handles of earlier requests, and send only the tokens
  // after them.
  bool use_handles = false;
  // Whether Finish says that a prompt has ended, if no later prompt continues
  // it.
  bool tell_ends = false;
  // "lane" or "grpc"; empty means a lane if there is one.
  std::string transport = {};
  // The limit of a call, and of connecting.
  absl::Duration timeout = absl::Seconds(30);
};

// How long the worker waited for the calls of one request.
struct CallTimes {
  uint32_t match_ns = 0;
  // It is zero if the call was not made, because the pool was exhausted.
  uint32_t insert_ns = 0;
  // The time of the floor; zero without one.
  uint32_t floor_ns = 0;
};

// Sums over all requests.
struct WorkerTotals {
  uint64_t input_tokens = 0;
  uint64_t matched_tokens = 0;
  // The tokens that admissions carried.
  uint64_t sent_tokens = 0;
  // Requests that found too few pages.
  uint64_t exhausted = 0;
  // Requests that began at a handle, and how many of these handles were gone.
  uint64_t handles = 0;
  uint64_t handles_gone = 0;
};

struct WorkerResult {
  WorkerTotals totals;
  // The times of the first and the last request, by the machine's monotonic
  // clock.
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // One for each request served, in order.
  std::vector<CallTimes> calls;
};

// Serves this worker's share of the trace as an engine would. Fails at the
// first error other than an exhausted pool. `floor` is null if the floor is not
// measured.
absl::StatusOr<WorkerResult> Serve(CacheCalls& cache, Floor* floor,
                                   const Trace& trace,
                                   const WorkerOptions& options);

}  // namespace pando::replay

#endif  // PANDO_REPLAY_WORKER_H_
