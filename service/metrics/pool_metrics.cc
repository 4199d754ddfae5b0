// The metrics of the pool's pages: what they are used for, and who gets them.

#include "absl/strings/str_cat.h"
#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

// Adds series of pages by state, each page counted as `unit`.
void AddStates(const PageCounts& pages, double unit, Samples& out) {
  out.Add({"free"}, pages.free * unit);
  out.Add({"reserved"}, pages.reserved * unit);
  out.Add({"evictable"}, pages.evictable * unit);
  out.Add({"protected"}, pages.protected_ * unit);
  out.Add({"quarantined"}, pages.quarantined * unit);
  out.Add({"padding"}, pages.padding * unit);
}

// Returns the number as a text, or "" for 0, which means that it is not known.
std::string Known(uint32_t number) {
  return number == 0 ? "" : absl::StrCat(number);
}

double PageBytesOf(const Snapshot& s) {
  return static_cast<double>(s.pool.page_bytes);
}

}  // namespace

std::vector<Metric> PoolMetrics() {
  return {
      Gauge("pando_pool_pages", "Pages by state; they sum to the capacity.",
            {{"state", ""}},
            [](const Snapshot& s, Samples& out) {
              AddStates(s.cache.pages, 1, out);
            }),
      Gauge("pando_pool_bytes",
            "Bytes of the pages by state; they sum to the capacity.",
            {{"state", ""}},
            [](const Snapshot& s, Samples& out) {
              AddStates(s.cache.pages, PageBytesOf(s), out);
            }),
      Gauge("pando_pool_capacity_pages",
            "Pages of the pool, the padding page included.",
            [](const Snapshot& s) { return s.cache.pages.capacity; }),
      Gauge("pando_pool_capacity_bytes",
            "Bytes of the pool, on all shards together.",
            [](const Snapshot& s) {
              return s.cache.pages.capacity * PageBytesOf(s);
            }),
      Gauge("pando_pool_page_bytes",
            "Bytes of one page over all layers and shards.", PageBytesOf),
      Gauge("pando_pool_page_tokens", "Tokens of one page.",
            [](const Snapshot& s) { return s.pool.page_tokens; }),
      Gauge("pando_pool_shards", "Shards of the pool.",
            [](const Snapshot& s) { return s.pool.shards; }),
      Gauge(
          "pando_pool_info", "1, with what the pool is as labels.",
          {{"device", "where the first shard's memory is: `host`, or a device"},
           {"dtype", "the element type"},
           {"layout", "the order of memory, or `open` or `none`"},
           {"layers", "of the model"},
           {"heads", "of one shard; empty where a page is opaque"},
           {"head_size", "elements; empty where a page is opaque"},
           {"model", "the model, if one is configured"}},
          [](const Snapshot& s, Samples& out) {
            const PoolFigures& pool = s.pool;
            out.Add({pool.device, pool.dtype, pool.layout, Known(pool.layers),
                     Known(pool.heads), Known(pool.head_size), pool.model},
                    1);
          }),
      Counter(
          "pando_alloc_pages_total", "Pages reserved for sessions.",
          [](const Snapshot& s) { return s.cache.counters.allocated_pages; }),
      Counter("pando_alloc_requests_total",
              "Reservations of pages: those that found them free, those that "
              "had to evict, and those that failed.",
              {{"result", ""}},
              [](const Snapshot& s, Samples& out) {
                const Measurements& m = s.cache.measured;
                double failed = 0;
                for (uint64_t n : m.failed_allocations) {
                  failed += static_cast<double>(n);
                }
                out.Add({"ok"},
                        static_cast<double>(m.allocations -
                                            m.allocations_after_eviction));
                out.Add({"ok_after_evict"},
                        static_cast<double>(m.allocations_after_eviction));
                out.Add({"failed"}, failed);
              }),
      Counter("pando_alloc_failures_total",
              "Reservations refused: too few pages are free or evictable, more "
              "than the pool has, or over the quota of the class.",
              {{"reason", ""}},
              [](const Snapshot& s, Samples& out) {
                const auto& failed = s.cache.measured.failed_allocations;
                const auto add = [&](const char* reason,
                                     AllocationFailure which) {
                  out.Add({reason}, static_cast<double>(failed[which]));
                };
                add("exhausted", AllocationFailure::kExhausted);
                add("too_large", AllocationFailure::kTooLarge);
                add("quota", AllocationFailure::kQuota);
              }),
      Gauge("pando_quarantine_held_pages",
            "Pages in quarantine to which a process that is known to be there "
            "may write: no time frees them.",
            [](const Snapshot& s) { return s.cache.held_pages; }),
      Counter("pando_page_recoveries_total",
              "How often a pandod took the cached pages over from the one "
              "before.",
              [](const Snapshot& s) {
                return static_cast<double>(s.cache.recoveries);
              }),
      Counter(
          "pando_quarantined_pages_total",
          "Reserved pages that lost their owner and had to wait.",
          [](const Snapshot& s) { return s.cache.counters.quarantined_pages; }),
      Counter("pando_verified_pages_total",
              "With --verify-pages: pages that were compared with what they "
              "held when they were inserted.",
              [](const Snapshot& s) { return s.verified_pages.checks; }),
      Counter("pando_page_violations_total",
              "Of these, pages that had changed; must stay 0.",
              [](const Snapshot& s) { return s.verified_pages.violations; }),
      Gauge("pando_quota_reserved_pages",
            "Pages reserved for namespaces of a class.",
            {NamespaceClassLabel()},
            [](const Snapshot& s, Samples& out) {
              for (const auto& c : s.classes) {
                out.Add({c.name}, static_cast<double>(c.reserved_pages));
              }
            }),
      Gauge("pando_quota_cached_pages",
            "Pages cached in namespaces of a class.", {NamespaceClassLabel()},
            [](const Snapshot& s, Samples& out) {
              for (const auto& c : s.classes) {
                out.Add({c.name}, static_cast<double>(c.cached_pages));
              }
            }),
      Counter("pando_quota_rejections_total",
              "Reservations and inserts refused because their class was at "
              "its cap.",
              {NamespaceClassLabel()},
              [](const Snapshot& s, Samples& out) {
                for (const auto& c : s.classes) {
                  out.Add({c.name},
                          static_cast<double>(c.traffic.quota_rejections));
                }
              }),
  };
}

}  // namespace pando
