// The results of a replay, as a table and as JSON.
#ifndef PANDO_REPLAY_REPORT_H_
#define PANDO_REPLAY_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "replay/accounts.h"
#include "replay/trace.h"
#include "replay/worker.h"

namespace pando::replay {

// Durations in microseconds.
struct Times {
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
};

// Exact, because it uses all values and no buckets.
Times Summarize(std::vector<uint32_t> nanoseconds);

struct Report {
  // The cache that the trace was replayed on.
  std::string policy;
  uint64_t pool_tokens = 0;
  uint64_t clients = 0;

  uint64_t requests = 0;
  WorkerTotals totals;
  HitTokens hits;
  // For comparison: what an LRU cache of blocks, and one without limit, would
  // hit.
  HitTokens block_lru;
  HitTokens unlimited;
  // From the start of the first worker to the end of the last one, including
  // the time to make the tokens.
  double wall_seconds = 0;
  // The sum over workers of requests per second of waiting for calls.
  double requests_per_second = 0;
  double calls_per_request = 0;
  // The two calls of an admitted request, together and separately.
  Times request;
  Times match_prefix;
  Times insert;
  // All zero when no floor was measured.
  Times floor;
  uint64_t evicted_pages = 0;
  PagesByState pages;
  std::vector<std::string> invariant_violations;
  // Figures of the cache and the workers that disagree; empty when all is well.
  std::vector<std::string> problems;

  bool is_ok() const {
    return invariant_violations.empty() && problems.empty();
  }
};

// Fills in everything that follows from the workers' results.
void AddResults(const std::vector<WorkerResult>& results, Report* report);

// Fills in what follows from the cache's figures before and after, and compares
// them with the workers'. REQUIRES: AddResults was called.
void AddAccounts(const Accounts& before, const Accounts& after, Report* report);

// A table of one replay, with a figure in each line.
std::string ToTable(const Report& report);
// A table of several, with a replay in each line.
std::string ToTable(const std::vector<Report>& reports);
// A JSON list.
std::string ToJson(const std::vector<Report>& reports);

}  // namespace pando::replay

#endif  // PANDO_REPLAY_REPORT_H_
