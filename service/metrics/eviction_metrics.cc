// What left the cache to make room, and how much of it was missed.

#include <utility>

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

constexpr std::pair<EvictionReason, std::string_view> kReasons[] = {
    {EvictionReason::kAllocation, "allocation"},
    {EvictionReason::kRequest, "request"},
    {EvictionReason::kWatermark, "watermark"},
    {EvictionReason::kQuota, "quota"},
    {EvictionReason::kFlush, "flush"},
};
static_assert(std::size(kReasons) == kEvictionReasons);

template <typename F>
void ForEachPolicy(F&& visit) {
  for (size_t i = 0; i < kEvictionPolicies; ++i) {
    visit(static_cast<EvictionPolicyKind>(i));
  }
}

}  // namespace

std::vector<Metric> EvictionMetrics() {
  return {
      Counter("pando_evicted_pages_total",
              "Pages evicted, by what made it necessary (a reservation, Evict, "
              "the watermark, the cap of a class, Flush) and the policy that "
              "chose them.",
              {{"reason", ""}, {"policy", ""}},
              [](const Snapshot& s, Samples& out) {
                for (const auto& [reason, name] : kReasons) {
                  ForEachPolicy([&, r = reason, n = name](auto policy) {
                    out.Add({n, EvictionPolicyName(policy)},
                            static_cast<double>(
                                s.cache.measured.evicted_pages[r][policy]));
                  });
                }
              }),
      HistogramMetric("pando_eviction_page_age_seconds",
                      "Of each evicted page: the time since it was inserted, "
                      "by tenths of a second.",
                      kAgeSeconds, {{"reason", ""}},
                      [](const Snapshot& s, Samples& out) {
                        for (const auto& [reason, name] : kReasons) {
                          const auto& ages =
                              s.cache.measured.evicted_page_age_seconds;
                          out.Add({name}, ages[reason].View());
                        }
                      }),
      HistogramMetric("pando_eviction_page_idle_seconds",
                      "Of each evicted page: the time since its last use, by "
                      "tenths of a second. Short ones say that the pool is too "
                      "small.",
                      kAgeSeconds, {{"reason", ""}},
                      [](const Snapshot& s, Samples& out) {
                        for (const auto& [reason, name] : kReasons) {
                          const auto& idle =
                              s.cache.measured.evicted_page_idle_seconds;
                          out.Add({name}, idle[reason].View());
                        }
                      }),
      HistogramMetric("pando_evicted_page_refetch_seconds",
                      "Estimate, from a sample of the pages: of each page "
                      "inserted again after its eviction, the time between the "
                      "two.",
                      kAgeSeconds, {},
                      [](const Snapshot& s, Samples& out) {
                        out.Add({}, s.regret.refetch_seconds.View());
                      }),
      Gauge("pando_eviction_policy_info", "1 for the policy in use, else 0.",
            {{"policy", ""}},
            [](const Snapshot& s, Samples& out) {
              ForEachPolicy([&](EvictionPolicyKind policy) {
                out.Add({EvictionPolicyName(policy)},
                        policy == s.cache.eviction_policy ? 1 : 0);
              });
            }),
  };
}

}  // namespace pando
