// Copies of pages outside the pool.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

constexpr const char* kDisk = "disk";

Metric::Collect OfDisk(uint64_t TierFigures::*number) {
  return [number](const Snapshot& s, Samples& out) {
    out.Add({kDisk}, static_cast<double>(s.tiers.*number));
  };
}

// Series of pages that went either way, each worth `unit`.
template <typename Unit>
Metric::Collect ByDirection(Unit unit) {
  return [unit](const Snapshot& s, Samples& out) {
    const auto worth = static_cast<double>(unit(s.tiers));
    out.Add({kDisk, "store"},
            static_cast<double>(s.tiers.stored_pages) * worth);
    out.Add({kDisk, "load"}, static_cast<double>(s.tiers.loaded_pages) * worth);
  };
}

}  // namespace

std::vector<Metric> TierMetrics() {
  return {
      Gauge("pando_tier_capacity_pages", "Pages that a tier has room for.",
            {{"tier", ""}}, OfDisk(&TierFigures::capacity_pages)),
      Gauge("pando_tier_pages", "Pages of which a tier has a copy.",
            {{"tier", ""}}, OfDisk(&TierFigures::held_pages)),
      Counter("pando_tier_copied_pages_total",
              "Pages copied to a tier (store), and back into the pool (load).",
              {{"tier", ""}, {"direction", ""}},
              ByDirection([](const TierFigures&) { return 1; })),
      Counter("pando_tier_copied_bytes_total", "The bytes of these pages.",
              {{"tier", ""}, {"direction", ""}},
              ByDirection([](const TierFigures& t) { return t.page_bytes; })),
      Counter("pando_tier_dropped_pages_total",
              "Pages that were not stored: the tier was too slow, they were "
              "evicted before their turn, or their prompt is too long.",
              {{"tier", ""}}, OfDisk(&TierFigures::dropped_pages)),
      Counter("pando_tier_failures_total",
              "Copies that failed: the system refused to write or read, or "
              "what was read is not what had been stored (verify).",
              {{"tier", ""}, {"step", ""}},
              [](const Snapshot& s, Samples& out) {
                const auto add = [&](const char* step, uint64_t count) {
                  out.Add({kDisk, step}, static_cast<double>(count));
                };
                add("write", s.tiers.failed_writes);
                add("read", s.tiers.failed_reads);
                add("verify", s.tiers.damaged_pages);
              }),
  };
}

}  // namespace pando
