#include "tools/pandoctl/rates.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace pando::ctl {
namespace {

uint64_t EvictedPages(const v1::CacheCounters& c) {
  return c.evicted_pages_for_allocation() + c.evicted_pages_on_request() +
         c.evicted_pages_for_watermark() + c.evicted_pages_for_quota();
}

uint64_t Refusals(const v1::CacheCounters& c) {
  return c.allocation_failures() + c.quota_rejections();
}

}  // namespace

Rates RatesBetween(const v1::GetStatsResponse& before,
                   const v1::GetStatsResponse& after, absl::Duration elapsed) {
  const v1::CacheCounters& now = after.counters();
  const v1::CacheCounters& then = before.epoch() == after.epoch()
                                      ? before.counters()
                                      : v1::CacheCounters::default_instance();
  const double seconds = absl::ToDoubleSeconds(elapsed);
  const auto rate = [seconds](uint64_t from, uint64_t to) {
    return static_cast<double>(to - from) / seconds;
  };
  return {.seconds = seconds,
          .matches = rate(then.matches(), now.matches()),
          .inserts = rate(then.inserts(), now.inserts()),
          .evicted_pages = rate(EvictedPages(then), EvictedPages(now)),
          .refusals = rate(Refusals(then), Refusals(now)),
          .query_tokens = now.query_tokens() - then.query_tokens(),
          .hit_tokens = now.hit_tokens() - then.hit_tokens()};
}

Json ToJson(const Rates& rates) {
  return {{"seconds", rates.seconds},
          {"query_tokens", rates.query_tokens},
          {"hit_tokens", rates.hit_tokens},
          {"matches_per_second", rates.matches},
          {"inserts_per_second", rates.inserts},
          {"evicted_pages_per_second", rates.evicted_pages},
          {"refusals_per_second", rates.refusals}};
}

absl::Status Repeat(
    Server& server, const Options& options,
    absl::FunctionRef<absl::Status(const v1::GetStatsResponse&, const Rates&)>
        show) {
  ASSIGN_OR_RETURN(v1::GetStatsResponse before,
                   server.Ask(v1::GetStatsRequest()));
  absl::Time taken_at = absl::Now();
  for (uint32_t i = 0; options.count == 0 || i < options.count; ++i) {
    absl::SleepFor(absl::Seconds(options.interval_s));
    ASSIGN_OR_RETURN(v1::GetStatsResponse after,
                     server.Ask(v1::GetStatsRequest()));
    const absl::Time now = absl::Now();
    RETURN_IF_ERROR(show(after, RatesBetween(before, after, now - taken_at)));
    before = std::move(after);
    taken_at = now;
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
