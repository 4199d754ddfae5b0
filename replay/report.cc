#include "replay/report.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pando::replay {
namespace {

void CheckEqual(uint64_t actual, uint64_t expected, const char* what,
                Report* report) {
  if (actual == expected) return;
  report->problems.push_back(
      absl::StrCat(what, ": ", actual, ", expected ", expected));
}

void AddTotals(const WorkerTotals& from, WorkerTotals* to) {
  to->input_tokens += from.input_tokens;
  to->matched_tokens += from.matched_tokens;
  to->sent_tokens += from.sent_tokens;
  to->exhausted += from.exhausted;
  to->handles += from.handles;
  to->handles_gone += from.handles_gone;
}

// Summarizes a number of each admitted request.
template <typename Number>
Times SummarizeAdmitted(const std::vector<WorkerResult>& results,
                        Number number) {
  std::vector<uint32_t> values;
  for (const WorkerResult& result : results) {
    for (const CallTimes& times : result.calls) {
      if (times.insert_ns > 0) values.push_back(number(times));
    }
  }
  return Summarize(std::move(values));
}

double RequestsPerSecond(const WorkerResult& result) {
  double ns = 0;
  for (const CallTimes& times : result.calls) {
    ns += times.match_ns + times.insert_ns;
  }
  return ns == 0 ? 0 : static_cast<double>(result.calls.size()) / ns * 1e9;
}

}  // namespace

Times Summarize(std::vector<uint32_t> nanoseconds) {
  if (nanoseconds.empty()) return {};
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const size_t last = nanoseconds.size() - 1;
  const double sum =
      std::accumulate(nanoseconds.begin(), nanoseconds.end(), 0.0);
  return {.mean = sum / nanoseconds.size() / 1e3,
          .p50 = nanoseconds[last / 2] / 1e3,
          .p99 = nanoseconds[last * 99 / 100] / 1e3};
}

void AddResults(const std::vector<WorkerResult>& results, Report* report) {
  int64_t begin_ns = results.front().begin_ns;
  int64_t end_ns = results.front().end_ns;
  for (const WorkerResult& result : results) {
    report->requests += result.calls.size();
    report->requests_per_second += RequestsPerSecond(result);
    AddTotals(result.totals, &report->totals);
    begin_ns = std::min(begin_ns, result.begin_ns);
    end_ns = std::max(end_ns, result.end_ns);
  }
  const WorkerTotals& totals = report->totals;
  report->hits = {.input = totals.input_tokens, .hit = totals.matched_tokens};
  report->clients = results.size();
  report->wall_seconds = (end_ns - begin_ns) / 1e9;
  const uint64_t calls =
      2 * report->requests - totals.exhausted + totals.handles_gone;
  report->calls_per_request =
      static_cast<double>(calls) / std::max<uint64_t>(report->requests, 1);
  report->request = SummarizeAdmitted(results, [](const CallTimes& times) {
    return times.match_ns + times.insert_ns;
  });
  report->match_prefix = SummarizeAdmitted(
      results, [](const CallTimes& times) { return times.match_ns; });
  report->insert = SummarizeAdmitted(
      results, [](const CallTimes& times) { return times.insert_ns; });
  report->floor = SummarizeAdmitted(
      results, [](const CallTimes& times) { return times.floor_ns; });
}

void AddAccounts(const Accounts& before, const Accounts& after,
                 Report* report) {
  const PagesByState& pages = after.pages;
  report->evicted_pages = after.evicted_pages - before.evicted_pages;
  report->policy = after.policy;
  report->pages = pages;
  report->invariant_violations = after.invariant_violations;
  CheckEqual(pages.Sum(), pages.capacity, "sum of the page states", report);
  CheckEqual(pages.reserved, 0, "reserved pages at the end", report);
  CheckEqual(pages.protected_pages, 0, "protected pages at the end", report);
  CheckEqual(pages.quarantined, 0, "quarantined pages at the end", report);
  CheckEqual(after.locks, 0, "locks at the end", report);
  CheckEqual(after.hit_tokens - before.hit_tokens, report->hits.hit,
             "hit tokens counted by the cache", report);
  CheckEqual(after.allocation_failures - before.allocation_failures,
             report->totals.exhausted,
             "allocation failures counted by the cache", report);
  CheckEqual(
      before.pages.evictable + after.inserted_pages - before.inserted_pages,
      pages.evictable + report->evicted_pages,
      "pages inserted, against pages cached and evicted", report);
}

}  // namespace pando::replay
