// The metrics of eviction: what left the cache to make room, how much of it was
// missed, and what LRU would have kept.

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

// The names of the levels of ReuseClass::uses.
constexpr std::string_view kUses[] = {"1",   "2",    "3",     "4-5",
                                      "6-8", "9-16", "17-64", "65+"};
static_assert(std::size(kUses) == kUsesLevels);

template <typename F>
void ForEachPolicy(F&& visit) {
  for (size_t i = 0; i < kEvictionPolicies; ++i) {
    visit(static_cast<EvictionPolicyKind>(i));
  }
}

// Collects the one series of a metric, or none while reuse is not learnt.
template <typename Figure>
Metric::Collect WhileLearnt(Figure ReuseStats::*figure) {
  return [figure](const Snapshot& s, Samples& out) {
    if (!s.cache.reuse.has_value()) return;
    out.Add({}, static_cast<double>((*s.cache.reuse).*figure));
  };
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
      Counter("pando_evicted_ended_pages_total",
              "Pages evicted before all others, because an insert said that "
              "their prefix had ended.",
              [](const Snapshot& s) {
                return s.cache.measured.evicted_ended_pages;
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
      Counter("pando_reuse_requested_pages_total",
              "Whole pages of the prompts of all requests.", {},
              WhileLearnt(&ReuseStats::requested_pages)),
      Counter("pando_reuse_lru_hit_pages_total",
              "Of the requested pages, those that an LRU cache of the same "
              "size would have found, without locks and quotas.",
              {}, WhileLearnt(&ReuseStats::lru_hit_pages)),
      Gauge("pando_reuse_gained_pages",
            "Hits above those of LRU, counted up to the capacity; below 0: "
            "LRU would have found more.",
            {}, WhileLearnt(&ReuseStats::gained_pages)),
      Gauge("pando_reuse_debt_pages",
            "Pages that LRU would hold and the cache does not.", {},
            WhileLearnt(&ReuseStats::debt_pages)),
      Counter("pando_reuse_ghost_hit_pages_total",
              "Pages inserted again after they were evicted, of those that "
              "are remembered.",
              {}, WhileLearnt(&ReuseStats::ghost_hit_pages)),
      Gauge("pando_reuse_chance",
            "Fitted chance that a page is used again within 1,024 requests of "
            "its last use, by how often it was used.",
            {{"uses", ""}},
            [](const Snapshot& s, Samples& out) {
              if (!s.cache.reuse.has_value()) return;
              for (uint32_t level = 0; level < kUsesLevels; ++level) {
                out.Add({kUses[level]}, s.cache.reuse->chance_by_uses[level]);
              }
            }),
  };
}

}  // namespace pando
