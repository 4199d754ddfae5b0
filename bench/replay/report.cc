#include "bench/replay/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace pando::replay {
namespace {

void CheckEqual(uint64_t actual, uint64_t expected, const char* what,
                Report* report) {
  if (actual == expected) return;
  report->problems.push_back(
      absl::StrCat(what, ": ", actual, ", expected ", expected));
}

std::string Row(const std::string& name, const std::string& value) {
  return absl::StrFormat("%-42s %s\n", name, value);
}

std::string Row(const std::string& name, const Times& times) {
  return Row(name, absl::StrFormat("mean %.1f  p50 %.1f  p99 %.1f us",
                                   times.mean, times.p50, times.p99));
}

std::string Percent(double rate) {
  return absl::StrFormat("%.2f %%", 100 * rate);
}

nlohmann::json ToJson(const Times& times) {
  return {{"mean", times.mean}, {"p50", times.p50}, {"p99", times.p99}};
}

nlohmann::json ToJson(const PageStates& pages) {
  return {{"free", pages.free},
          {"reserved", pages.reserved},
          {"evictable", pages.evictable},
          {"protected", pages.protected_pages},
          {"quarantined", pages.quarantined},
          {"padding", pages.padding},
          {"sum", pages.Sum()},
          {"capacity", pages.capacity}};
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
  std::vector<uint32_t> requests, matches, inserts;
  int64_t begin_ns = results.front().begin_ns;
  int64_t end_ns = results.front().end_ns;
  for (const WorkerResult& result : results) {
    report->requests += result.calls.size();
    report->exhausted += result.exhausted;
    report->hits.input += result.input_tokens;
    report->hits.hit += result.matched_tokens;
    begin_ns = std::min(begin_ns, result.begin_ns);
    end_ns = std::max(end_ns, result.end_ns);
    double in_calls_ns = 0;
    for (const CallTimes& times : result.calls) {
      in_calls_ns += times.match_ns + times.insert_ns;
      if (times.insert_ns == 0) continue;
      matches.push_back(times.match_ns);
      inserts.push_back(times.insert_ns);
      requests.push_back(times.match_ns + times.insert_ns);
    }
    if (in_calls_ns > 0) {
      report->requests_per_second_in_calls +=
          result.calls.size() / in_calls_ns * 1e9;
    }
  }
  report->clients = results.size();
  report->wall_seconds = (end_ns - begin_ns) / 1e9;
  report->requests_per_second_wall = report->requests / report->wall_seconds;
  report->rpcs_per_request =
      static_cast<double>(report->requests + inserts.size()) /
      std::max<uint64_t>(report->requests, 1);
  report->request = Summarize(std::move(requests));
  report->match_prefix = Summarize(std::move(matches));
  report->insert = Summarize(std::move(inserts));
}

void AddStats(const Stats& before, const Stats& after, Report* report) {
  const CacheCounters& was = before.counters;
  const CacheCounters& is = after.counters;
  const PageStates& pages = after.pages;
  report->evicted_pages =
      is.evicted_pages_for_allocation - was.evicted_pages_for_allocation;
  report->pages = pages;
  CheckEqual(pages.Sum(), pages.capacity, "sum of the page states", report);
  CheckEqual(pages.reserved, 0, "reserved pages at the end", report);
  CheckEqual(pages.protected_pages, 0, "protected pages at the end", report);
  CheckEqual(pages.quarantined, 0, "quarantined pages at the end", report);
  CheckEqual(after.locks, 0, "locks at the end", report);
  CheckEqual(is.hit_tokens - was.hit_tokens, report->hits.hit,
             "hit tokens counted by the server", report);
  CheckEqual(is.allocation_failures - was.allocation_failures,
             report->exhausted, "allocation failures counted by the server",
             report);
  CheckEqual(before.pages.evictable + is.inserted_pages - was.inserted_pages,
             pages.evictable + report->evicted_pages,
             "pages inserted, against pages cached and evicted", report);
}

std::string ToTable(const Report& report) {
  const PageStates& pages = report.pages;
  std::string table = absl::StrCat(
      Row("requests", absl::StrCat(report.requests, " from ", report.clients,
                                   " client process(es)")),
      Row("input tokens", absl::StrCat(report.hits.input)),
      Row("token hit rate", Percent(report.hits.Rate())),
      Row("token hit rate of an unlimited cache",
          Percent(report.unlimited.Rate())),
      Row("refused, pool exhausted", absl::StrCat(report.exhausted)),
      Row("requests/s, in calls",
          absl::StrFormat("%.0f", report.requests_per_second_in_calls)),
      Row("requests/s, wall, with making tokens",
          absl::StrFormat("%.0f in %.2f s", report.requests_per_second_wall,
                          report.wall_seconds)),
      Row("RPCs per request",
          absl::StrFormat("%.3f", report.rpcs_per_request)));
  absl::StrAppend(
      &table, Row("request: its calls together", report.request),
      Row("MatchPrefix (match, lock, reserve)", report.match_prefix),
      Row("Insert (publish, unlock, free)", report.insert),
      Row("evicted pages", absl::StrCat(report.evicted_pages)),
      Row("pages at the end",
          absl::StrFormat("%u free + %u reserved + %u evictable + %u protected "
                          "+ %u quarantined + %u padding = %u of %u",
                          pages.free, pages.reserved, pages.evictable,
                          pages.protected_pages, pages.quarantined,
                          pages.padding, pages.Sum(), pages.capacity)),
      Row("invariants", report.invariant_violations.empty()
                            ? "all hold"
                            : absl::StrJoin(report.invariant_violations, "; ")),
      Row("accounts", report.problems.empty()
                          ? "add up"
                          : absl::StrJoin(report.problems, "; ")));
  return table;
}

std::string ToJson(const Report& report) {
  const nlohmann::json json = {
      {"requests", report.requests},
      {"clients", report.clients},
      {"exhausted", report.exhausted},
      {"input_tokens", report.hits.input},
      {"hit_tokens", report.hits.hit},
      {"hit_rate", report.hits.Rate()},
      {"unlimited_hit_rate", report.unlimited.Rate()},
      {"wall_seconds", report.wall_seconds},
      {"requests_per_second_wall", report.requests_per_second_wall},
      {"requests_per_second_in_calls", report.requests_per_second_in_calls},
      {"rpcs_per_request", report.rpcs_per_request},
      {"request_us", ToJson(report.request)},
      {"match_prefix_us", ToJson(report.match_prefix)},
      {"insert_us", ToJson(report.insert)},
      {"evicted_pages", report.evicted_pages},
      {"pages", ToJson(report.pages)},
      {"invariant_violations", report.invariant_violations},
      {"problems", report.problems}};
  return json.dump(2) + "\n";
}

}  // namespace pando::replay
