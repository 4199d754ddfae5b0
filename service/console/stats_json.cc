#include "service/console/stats_json.h"

#include <numeric>
#include <optional>
#include <string>

namespace pando {
namespace {

using nlohmann::json;

json PagesJson(const PageCounts& pages) {
  return {{"free", pages.free},
          {"reserved", pages.reserved},
          {"evictable", pages.evictable},
          {"protected", pages.protected_},
          {"quarantined", pages.quarantined},
          {"padding", pages.padding},
          {"capacity", pages.capacity}};
}

json EvictedJson(const Measurements& measured) {
  const auto of = [&](EvictionReason reason) {
    const auto& by_policy = measured.evicted_pages[reason];
    return std::accumulate(by_policy.begin(), by_policy.end(), uint64_t{0});
  };
  return {{"allocation", of(EvictionReason::kAllocation)},
          {"request", of(EvictionReason::kRequest)},
          {"watermark", of(EvictionReason::kWatermark)},
          {"quota", of(EvictionReason::kQuota)},
          {"flush", of(EvictionReason::kFlush)}};
}

// Returns JSON null while reuse is not learnt.
json ReuseJson(const std::optional<ReuseStats>& reuse) {
  if (!reuse.has_value()) return nullptr;
  return {{"requested_pages", reuse->requested_pages},
          {"hit_pages", reuse->hit_pages},
          {"lru_hit_pages", reuse->lru_hit_pages}};
}

}  // namespace

json CacheJson(const CacheStats& stats) {
  const CacheCounters& counters = stats.counters;
  return {{"pages", PagesJson(stats.pages)},
          {"evicted_pages", EvictedJson(stats.measured)},
          {"matches", counters.matches},
          {"query_tokens", counters.query_tokens},
          {"hit_tokens", counters.hit_tokens},
          {"inserts", counters.inserts},
          {"allocation_failures", counters.allocation_failures},
          {"sessions", stats.sessions},
          {"sessions_lost", counters.sessions_lost},
          {"locks", stats.locks},
          {"oldest_lock_s", absl::ToDoubleSeconds(stats.oldest_lock_age)},
          {"nodes", stats.nodes},
          {"namespaces", stats.namespaces},
          {"waits", stats.waits},
          {"reuse", ReuseJson(stats.reuse)},
          {"policy", std::string(EvictionPolicyName(stats.eviction_policy))}};
}

json LayoutJson(const kv::Layout* layout) {
  if (layout == nullptr) return nullptr;
  json fields = {{"layers", layout->layers},
                 {"dtype", std::string(kv::DTypeName(layout->dtype))}};
  if (layout->dtype == kv::DType::kOpaque) return fields;
  fields["heads"] = layout->heads;
  fields["head_size"] = layout->head_size;
  return fields;
}

json RpcJson(const std::vector<MethodFigures>& methods) {
  json called = json::array();
  for (const MethodFigures& method : methods) {
    if (method.type != "unary") continue;
    uint64_t started = 0;
    for (const TransportFigures& each : method.transports) {
      started += each.started;
    }
    if (started == 0) continue;
    const HistogramView seconds = method.seconds.View();
    called.push_back({{"service", method.service},
                      {"method", method.method},
                      {"counts", seconds.counts}});
  }
  return {{"bounds_s", kRpcSeconds}, {"methods", std::move(called)}};
}

}  // namespace pando
