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

// Returns the times of these values. They are exact, because no buckets are
// used.
Times Summarize(std::vector<uint32_t> nanoseconds);

struct Report {
  // The eviction policy and the size of the cache.
  std::string policy;
  uint64_t pool_tokens = 0;
  uint64_t clients = 0;

  uint64_t requests = 0;
  WorkerTotals totals;
  HitTokens hits;
  // For comparison, the hits of an LRU cache of blocks, and of a cache without
  // limit.
  HitTokens block_lru;
  HitTokens unlimited;
  // From the start of the first worker to the end of the last one, including
  // the time to make the tokens.
  double wall_seconds = 0;
  // The requests per second of a worker that does nothing but wait for calls,
  // summed over all workers.
  double requests_per_second = 0;
  double calls_per_request = 0;
  // The times of the two calls of an admitted request, together and separately.
  Times request;
  Times match_prefix;
  Times insert;
  // The times of the floor; zero if it was not measured.
  Times floor;
  uint64_t evicted_pages = 0;
  PagesByState pages;
  std::vector<std::string> invariant_violations;
  // A sentence for each figure in which the cache and the workers disagree.
  std::vector<std::string> problems;

  bool is_ok() const {
    return invariant_violations.empty() && problems.empty();
  }
};

// Fills in the figures that follow from the workers' results. REQUIRES: there
// is a result.
void AddResults(const std::vector<WorkerResult>& results, Report* report);

// Fills in the figures that follow from the cache's accounts before and after
// the replay, and compares these with the workers' figures. REQUIRES:
// AddResults was called.
void AddAccounts(const Accounts& before, const Accounts& after, Report* report);

// Returns a table of one replay, with a figure in each line.
std::string ToTable(const Report& report);
// Returns a table of several replays, with a replay in each line.
std::string ToTable(const std::vector<Report>& reports);
// Returns a JSON list of the reports.
std::string ToJson(const std::vector<Report>& reports);

}  // namespace pando::replay

#endif  // PANDO_REPLAY_REPORT_H_
