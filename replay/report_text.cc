// Writes reports as text.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "replay/report.h"

namespace pando::replay {
namespace {

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

std::string Joined(const std::vector<std::string>& problems, const char* none) {
  return problems.empty() ? none : absl::StrJoin(problems, "; ");
}

double PerRequest(uint64_t sum, const Report& report) {
  return static_cast<double>(sum) / std::max<uint64_t>(report.requests, 1);
}

std::string ToText(const PagesByState& pages) {
  return absl::StrFormat(
      "%u free + %u reserved + %u evictable + %u protected + %u quarantined + "
      "%u padding = %u of %u",
      pages.free, pages.reserved, pages.evictable, pages.protected_pages,
      pages.quarantined, pages.padding, pages.Sum(), pages.capacity);
}

nlohmann::json ToJson(const Times& times) {
  return {{"mean", times.mean}, {"p50", times.p50}, {"p99", times.p99}};
}

nlohmann::json ToJson(const PagesByState& pages) {
  return {{"free", pages.free},
          {"reserved", pages.reserved},
          {"evictable", pages.evictable},
          {"protected", pages.protected_pages},
          {"quarantined", pages.quarantined},
          {"padding", pages.padding},
          {"sum", pages.Sum()},
          {"capacity", pages.capacity}};
}

nlohmann::json ToJson(const Report& report) {
  const WorkerTotals& totals = report.totals;
  return {{"policy", report.policy},
          {"pool_tokens", report.pool_tokens},
          {"requests", report.requests},
          {"clients", report.clients},
          {"exhausted", totals.exhausted},
          {"input_tokens", report.hits.input},
          {"hit_tokens", report.hits.hit},
          {"sent_tokens", totals.sent_tokens},
          {"handles", totals.handles},
          {"handles_gone", totals.handles_gone},
          {"hit_rate", report.hits.Rate()},
          {"block_lru_hit_rate", report.block_lru.Rate()},
          {"unlimited_hit_rate", report.unlimited.Rate()},
          {"wall_seconds", report.wall_seconds},
          {"requests_per_second", report.requests_per_second},
          {"calls_per_request", report.calls_per_request},
          {"request_us", ToJson(report.request)},
          {"match_prefix_us", ToJson(report.match_prefix)},
          {"insert_us", ToJson(report.insert)},
          {"floor_us", ToJson(report.floor)},
          {"evicted_pages", report.evicted_pages},
          {"pages", ToJson(report.pages)},
          {"invariant_violations", report.invariant_violations},
          {"problems", report.problems}};
}

// The comparisons need a single order of requests, but several clients overtake
// each other.
constexpr char kInOrder[] = ", requests in the trace's order";

}  // namespace

std::string ToTable(const Report& report) {
  const WorkerTotals& totals = report.totals;
  std::string table = absl::StrCat(
      Row("requests", absl::StrCat(report.requests, " from ", report.clients,
                                   " client(s)")),
      Row("tokens",
          absl::StrFormat("%u; in a request %.0f, of which it sends %.0f",
                          report.hits.input,
                          PerRequest(report.hits.input, report),
                          PerRequest(totals.sent_tokens, report))),
      Row("begun at a handle",
          absl::StrFormat("%u, %u of them gone", totals.handles,
                          totals.handles_gone)),
      Row("token hit rate",
          absl::StrCat(Percent(report.hits.Rate()), ", ", report.policy)),
      Row("token hit rate of an LRU of blocks",
          absl::StrCat(Percent(report.block_lru.Rate()), kInOrder)),
      Row("token hit rate of an unlimited cache",
          absl::StrCat(Percent(report.unlimited.Rate()), kInOrder)),
      Row("refused, pool exhausted", absl::StrCat(totals.exhausted)),
      Row("requests/s, in calls",
          absl::StrFormat("%.0f", report.requests_per_second)),
      Row("wall time, with making tokens",
          absl::StrFormat("%.2f s", report.wall_seconds)),
      Row("calls per request",
          absl::StrFormat("%.3f", report.calls_per_request)));
  absl::StrAppend(
      &table, Row("request: its calls together", report.request),
      Row("MatchPrefix (match, lock, reserve)", report.match_prefix),
      Row("Insert (publish, unlock, free)", report.insert));
  if (report.floor.mean > 0) {
    absl::StrAppend(
        &table, Row("floor of a request", report.floor),
        Row("mean of the request over that of its floor",
            absl::StrFormat("%.2f", report.request.mean / report.floor.mean)));
  }
  absl::StrAppend(
      &table, Row("evicted pages", absl::StrCat(report.evicted_pages)),
      Row("pages at the end", ToText(report.pages)),
      Row("invariants", Joined(report.invariant_violations, "all hold")),
      Row("accounts", Joined(report.problems, "add up")));
  return table;
}

std::string ToTable(const std::vector<Report>& reports) {
  std::string table =
      absl::StrFormat("%-9s %10s %9s %9s %9s %10s %8s %8s %8s %8s\n", "policy",
                      "tokens", "hit rate", "block LRU", "unlimited",
                      "requests/s", "mean us", "p50", "p99", "floor");
  for (const Report& report : reports) {
    absl::StrAppendFormat(
        &table, "%-9s %10u %9s %9s %9s %10.0f %8.1f %8.1f %8.1f %8.1f\n",
        report.policy, report.pool_tokens, Percent(report.hits.Rate()),
        Percent(report.block_lru.Rate()), Percent(report.unlimited.Rate()),
        report.requests_per_second, report.request.mean, report.request.p50,
        report.request.p99, report.floor.mean);
    if (!report.is_ok()) {
      absl::StrAppend(&table, Joined(report.invariant_violations, ""),
                      Joined(report.problems, ""), "\n");
    }
  }
  return table;
}

std::string ToJson(const std::vector<Report>& reports) {
  nlohmann::json json = nlohmann::json::array();
  for (const Report& report : reports) json.push_back(ToJson(report));
  return json.dump(2) + "\n";
}

}  // namespace pando::replay
