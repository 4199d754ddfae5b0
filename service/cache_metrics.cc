#include "service/cache_metrics.h"

#include <prometheus/metric_family.h>

#include <string>
#include <utility>

#include "core/stats.h"

namespace pando {
namespace {

struct Sample {
  std::string label_value;  // empty: no label
  double value;
};

prometheus::MetricFamily Family(prometheus::MetricType type, std::string name,
                                std::string help, const std::string& label,
                                const std::vector<Sample>& samples) {
  prometheus::MetricFamily family;
  family.type = type;
  family.name = std::move(name);
  family.help = std::move(help);
  for (const Sample& sample : samples) {
    prometheus::ClientMetric metric;
    if (!sample.label_value.empty()) {
      metric.label = {{label, sample.label_value}};
    }
    if (type == prometheus::MetricType::Counter) {
      metric.counter.value = sample.value;
    } else {
      metric.gauge.value = sample.value;
    }
    family.metric.push_back(std::move(metric));
  }
  return family;
}

prometheus::MetricFamily Counter(std::string name, std::string help,
                                 uint64_t value) {
  return Family(prometheus::MetricType::Counter, std::move(name),
                std::move(help), "", {{"", static_cast<double>(value)}});
}

prometheus::MetricFamily Gauge(std::string name, std::string help,
                               uint64_t value) {
  return Family(prometheus::MetricType::Gauge, std::move(name), std::move(help),
                "", {{"", static_cast<double>(value)}});
}

// The class of all namespaces that no configured class names has no label.
void AppendQuotaClasses(const std::vector<QuotaClassStats>& classes,
                        std::vector<prometheus::MetricFamily>& families) {
  if (classes.empty()) return;
  std::vector<Sample> reserved, cached;
  for (const QuotaClassStats& quota : classes) {
    reserved.push_back({quota.name, static_cast<double>(quota.reserved_pages)});
    cached.push_back({quota.name, static_cast<double>(quota.cached_pages)});
  }
  families.push_back(Family(
      prometheus::MetricType::Gauge, "pando_quota_reserved_pages",
      "Pages reserved for namespaces of a quota class.", "class", reserved));
  families.push_back(
      Family(prometheus::MetricType::Gauge, "pando_quota_cached_pages",
             "Pages cached in namespaces of a quota class.", "class", cached));
}

}  // namespace

std::vector<prometheus::MetricFamily> CacheMetrics::Collect() const {
  const CacheStats stats = cache_->Stats();
  const CacheCounters& n = stats.counters;
  const auto d = [](uint64_t value) { return static_cast<double>(value); };
  std::vector<prometheus::MetricFamily> families = {
      Counter("pando_prefix_match_requests_total",
              "MatchPrefix calls that were answered.", n.matches),
      Counter("pando_prefix_query_tokens_total",
              "Tokens asked for in MatchPrefix, floored to whole pages.",
              n.query_tokens),
      Counter("pando_prefix_hit_tokens_total",
              "Of the tokens asked for, those that were cached.", n.hit_tokens),
      Counter("pando_inserts_total", "Insert calls that were carried out.",
              n.inserts),
      Family(
          prometheus::MetricType::Counter, "pando_inserted_pages_total",
          "Pages offered to Insert: new ones, and duplicates of cached ones.",
          "result",
          {{"new", d(n.inserted_pages)}, {"duplicate", d(n.duplicate_pages)}}),
      Family(prometheus::MetricType::Gauge, "pando_pool_pages",
             "Pages by state; they sum to the capacity.", "state",
             {{"free", d(stats.pages.free)},
              {"reserved", d(stats.pages.reserved)},
              {"evictable", d(stats.pages.evictable)},
              {"protected", d(stats.pages.protected_)},
              {"quarantined", d(stats.pages.quarantined)},
              {"padding", d(stats.pages.padding)}}),
      Gauge("pando_pool_capacity_pages",
            "Pages of the pool, the padding page included.",
            stats.pages.capacity),
      Gauge("pando_pool_page_bytes",
            "Bytes of one page over all layers and shards.", page_bytes_),
      Gauge("pando_pool_page_tokens", "Tokens of one page.",
            cache_->page_tokens()),
      Counter("pando_allocated_pages_total", "Pages reserved for sessions.",
              n.allocated_pages),
      Counter("pando_allocation_failures_total",
              "Reservations refused because too few pages were free or "
              "evictable.",
              n.allocation_failures),
      Family(prometheus::MetricType::Counter, "pando_evicted_pages_total",
             "Pages evicted, by what made it necessary.", "reason",
             {{"allocation", d(n.evicted_pages_for_allocation)},
              {"request", d(n.evicted_pages_on_request)},
              {"watermark", d(n.evicted_pages_for_watermark)},
              {"quota", d(n.evicted_pages_for_quota)}}),
      Counter("pando_quota_rejections_total",
              "Calls refused because their quota class was at its cap.",
              n.quota_rejections),
      Counter("pando_pending_waits_total",
              "Matches that waited for a page that another call computed.",
              n.pending_waits),
      Family(prometheus::MetricType::Counter, "pando_pending_waits_ended_total",
             "Those waits that have ended, by how.", "outcome",
             {{"published", d(n.pending_waits_published)},
              {"given_up", d(n.pending_waits_given_up)},
              {"timed_out", d(n.pending_waits_timed_out)}}),
      Gauge("pando_pending_matches", "Matches that wait now.", stats.waits),
      Counter("pando_repeated_requests_total",
              "Calls answered with the answer of the first call with their "
              "request_id.",
              n.repeated_requests),
      Counter("pando_quarantined_pages_total",
              "Reserved pages that lost their owner and had to wait.",
              n.quarantined_pages),
      Gauge("pando_locks", "Locks held now.", stats.locks),
      Counter("pando_locks_taken_total", "Locks taken.", n.locks_taken),
      Counter("pando_locks_released_total", "Locks released.",
              n.locks_released),
      Gauge("pando_sessions", "Sessions that live now.", stats.sessions),
      Counter("pando_sessions_opened_total", "Sessions opened.",
              n.sessions_opened),
      Family(prometheus::MetricType::Counter, "pando_sessions_ended_total",
             "Sessions ended: by the worker, or because it was lost.", "reason",
             {{"closed", d(n.sessions_closed)}, {"lost", d(n.sessions_lost)}}),
      Gauge("pando_index_nodes", "Nodes of the radix tree.", stats.nodes),
      Gauge("pando_namespaces", "Namespaces in which something is cached.",
            stats.namespaces),
      Counter("pando_invariant_violations_total",
              "Violations that the self-check found; must stay 0.",
              self_check_->violations()),
      Family(prometheus::MetricType::Gauge, "pando_eviction_policy_info",
             "1, with the policy of eviction as its label.", "policy",
             {{std::string(EvictionPolicyName(stats.eviction_policy)), 1}}),
  };
  AppendQuotaClasses(stats.quota_classes, families);
  return families;
}

}  // namespace pando
