// What a replay found, as a table and as JSON.
#ifndef PANDO_REPLAY_REPORT_H_
#define PANDO_REPLAY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "replay/accounts.h"
#include "replay/trace.h"
#include "replay/worker.h"

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
  // What was replayed on.
  std::string policy;
  uint64_t pool_tokens = 0;
  uint64_t clients = 0;

  uint64_t requests = 0;
  WorkerTotals totals;
  HitTokens hits;
  // The anchors: what a cache of blocks hits.
  HitTokens block_lru;
  HitTokens unlimited;
  // From the first worker's start to the last one's end, tokens made included.
  double wall_seconds = 0;
  // Each worker's requests over the time it waited for its calls, summed.
  double requests_per_second = 0;
  double calls_per_request = 0;
  // The two calls of a request that was admitted, together and apart.
  Times request;
  Times match_prefix;
  Times insert;
  // All zero: there was none.
  Times floor;
  uint64_t evicted_pages = 0;
  PagesByState pages;
  std::vector<std::string> invariant_violations;
  // Accounts that do not add up; empty when all is well.
  std::vector<std::string> problems;

  bool is_ok() const {
    return invariant_violations.empty() && problems.empty();
  }
};

// Fills in all that follows from the workers' results.
void AddResults(const std::vector<WorkerResult>& results, Report* report);

// Fills in what follows from the cache's numbers before and after, and checks
// them against the workers'. REQUIRES: AddResults came first.
void AddAccounts(const Accounts& before, const Accounts& after, Report* report);

// One replay, a figure a line.
std::string ToTable(const Report& report);
// Many, a replay a line.
std::string ToTable(const std::vector<Report>& reports);
// A list.
std::string ToJson(const std::vector<Report>& reports);

}  // namespace pando::replay

#endif  // PANDO_REPLAY_REPORT_H_
