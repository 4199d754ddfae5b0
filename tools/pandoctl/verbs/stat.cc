// pandoctl stat: a line for each interval, as vmstat has them.

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/rates.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// The header is repeated after so many lines.
constexpr uint32_t kLinesOfAScreen = 20;

std::string HeaderText() {
  return absl::StrFormat(
      "%6s %9s %9s %9s %9s | %9s %9s %9s %9s %9s | %7s %8s %7s\n", "hit%",
      "match/s", "insert/s", "evict/s", "refuse/s", "free", "reserved",
      "evictable", "protected", "quarant.", "locks", "sessions", "waiting");
}

std::string LineText(const v1::GetStatsResponse& stats, const Rates& rates) {
  const v1::PageStates& pages = stats.pages();
  return absl::StrFormat(
      "%6s %9.1f %9.1f %9.1f %9.1f | %9d %9d %9d %9d %9d | %7d %8d %7d\n",
      PercentText(rates.hit_tokens, rates.query_tokens), rates.matches,
      rates.inserts, rates.evicted_pages, rates.refusals, pages.free(),
      pages.reserved(), pages.evictable(), pages.protected_(),
      pages.quarantined(), stats.locks(), stats.sessions(),
      stats.waiting_matches());
}

Json LineJson(const v1::GetStatsResponse& stats, const Rates& rates) {
  Json line = ToJson(rates);
  line["pages"] = ToJson(stats.pages());
  line["locks"] = stats.locks();
  line["sessions"] = stats.sessions();
  line["waiting_matches"] = stats.waiting_matches();
  return line;
}

}  // namespace

absl::Status Stat(const Context& context) {
  uint32_t lines = 0;
  return Repeat(context.server, context.options,
                [&](const v1::GetStatsResponse& stats, const Rates& rates) {
                  if (!context.output.is_table()) {
                    context.output.PrintNext(LineJson(stats, rates));
                    return absl::OkStatus();
                  }
                  if (lines++ % kLinesOfAScreen == 0)
                    context.output.Print(HeaderText());
                  context.output.Print(LineText(stats, rates));
                  return absl::OkStatus();
                });
}

}  // namespace pando::ctl
