// The metrics of what the cache found and took in.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

double TokensOf(const Snapshot& s, uint64_t pages) {
  return static_cast<double>(pages) * s.pool.page_tokens;
}

// Collects series of one number for each quota class.
template <typename NumberOfClass>
Metric::Collect ByClass(NumberOfClass number) {
  return [number](const Snapshot& s, Samples& out) {
    for (const auto& c : s.classes) {
      out.Add({c.name}, static_cast<double>(number(c.traffic)));
    }
  };
}

}  // namespace

std::vector<Metric> PrefixMetrics() {
  return {
      Counter("pando_prefix_query_tokens_total",
              "Tokens asked for in MatchPrefix, floored to whole pages; the "
              "hit ratio is hit tokens by these.",
              {NamespaceClassLabel()},
              ByClass([](const auto& t) { return t.query_tokens; })),
      Counter("pando_prefix_hit_tokens_total",
              "Of the tokens asked for, those that were cached; `loaded` are "
              "those that a tier brought back, when they are hit first.",
              {NamespaceClassLabel(), {"tier", ""}},
              [](const Snapshot& s, Samples& out) {
                const bool has_tiers = s.host_tier.has_value() ||
                                       s.disk_tier.capacity_pages > 0 ||
                                       s.remote_tier.has_value();
                for (const auto& c : s.classes) {
                  const uint64_t loaded = c.traffic.loaded_hit_tokens;
                  out.Add({c.name, "device"},
                          static_cast<double>(c.traffic.hit_tokens - loaded));
                  if (has_tiers) {
                    out.Add({c.name, "loaded"}, static_cast<double>(loaded));
                  }
                }
              }),
      Counter(
          "pando_prefix_match_requests_total",
          "MatchPrefix calls that matched all the pages they could (full), "
          "some or none; repeats are not counted again.",
          {NamespaceClassLabel(), {"result", ""}},
          [](const Snapshot& s, Samples& out) {
            for (const auto& [name, t, reserved, cached] : s.classes) {
              out.Add({name, "full"}, static_cast<double>(t.full_matches));
              out.Add({name, "partial"},
                      static_cast<double>(t.partial_matches));
              out.Add({name, "miss"}, static_cast<double>(t.missed_matches));
            }
          }),
      Counter("pando_infinite_cache_hit_tokens_total",
              "Estimate: the tokens that a pool without limit would have "
              "found: hit tokens and refetched tokens.",
              [](const Snapshot& s) {
                return static_cast<double>(s.cache.counters.hit_tokens) +
                       TokensOf(s, s.regret.refetched_pages);
              }),
      Counter("pando_refetched_tokens_total",
              "Estimate: the tokens inserted again after their eviction, "
              "computed twice because the pool is too small.",
              [](const Snapshot& s) {
                return TokensOf(s, s.regret.refetched_pages);
              }),
      HistogramMetric(
          "pando_page_reuse_gap_seconds",
          "Of each page that a match found: the time since its last use; 0 "
          "while it is locked. By tenths of a second.",
          kAgeSeconds, {},
          [](const Snapshot& s, Samples& out) {
            out.Add({}, s.cache.measured.reuse_gap_seconds.View());
          }),
      Counter("pando_insert_requests_total",
              "Insert calls that were carried out; repeats are not counted "
              "again.",
              [](const Snapshot& s) { return s.cache.counters.inserts; }),
      Counter("pando_insert_tokens_total",
              "Tokens of the whole pages offered to Insert: new ones, and "
              "duplicates that were cached already.",
              {{"result", ""}},
              [](const Snapshot& s, Samples& out) {
                const CacheCounters& n = s.cache.counters;
                out.Add({"new"}, TokensOf(s, n.inserted_pages));
                out.Add({"duplicate"}, TokensOf(s, n.duplicate_pages));
              }),
      Counter(
          "pando_repeated_requests_total",
          "Calls answered with the answer of the first call with their "
          "request_id.",
          [](const Snapshot& s) { return s.cache.counters.repeated_requests; }),
      Gauge("pando_index_nodes", "Nodes of the radix tree.",
            [](const Snapshot& s) { return s.cache.nodes; }),
      Gauge("pando_namespaces",
            "Namespaces in which something is cached or locked.",
            [](const Snapshot& s) { return s.cache.namespaces; }),
      Counter("pando_events_dropped_total",
              "Cache events that watchers were too slow for, counted for each "
              "watcher.",
              [](const Snapshot& s) { return s.dropped_events; }),
  };
}

}  // namespace pando
