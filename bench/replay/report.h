// What a replay found, as a table and as JSON.
#ifndef PANDO_BENCH_REPLAY_REPORT_H_
#define PANDO_BENCH_REPLAY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/replay/trace.h"
#include "bench/replay/worker.h"
#include "pando/stats.h"

namespace pando::replay {

// In microseconds.
struct Times {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
};

// Exact: of all the values, not of buckets.
Times Summarize(std::vector<uint32_t> nanoseconds);

struct Report {
  uint64_t requests = 0;
  uint64_t clients = 0;
  uint64_t exhausted = 0;
  HitTokens hits;
  HitTokens unlimited;
  // From the first worker's start to the last one's end, tokens made included.
  double wall_seconds = 0;
  double requests_per_second_wall = 0;
  // Each worker's requests over the time it waited for its calls, summed.
  double requests_per_second_in_calls = 0;
  double rpcs_per_request = 0;
  // The two calls of a request that was admitted, together and apart.
  Times request;
  Times match_prefix;
  Times insert;
  uint64_t evicted_pages = 0;
  PageStates pages;
  std::vector<std::string> invariant_violations;
  // Accounts that do not add up; empty when all is well.
  std::vector<std::string> problems;
};

// Fills in all that follows from the workers' results.
void AddResults(const std::vector<WorkerResult>& results, Report* report);

// Fills in what follows from the server's numbers before and after, and
// checks them against the workers'. REQUIRES: AddResults came first.
void AddStats(const Stats& before, const Stats& after, Report* report);

std::string ToTable(const Report& report);
std::string ToJson(const Report& report);

}  // namespace pando::replay

#endif  // PANDO_BENCH_REPLAY_REPORT_H_
