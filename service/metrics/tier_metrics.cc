// The metrics of copies of pages outside the pool.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

// Series of the host tier and of the shared store exist only if there is one.
MetricLabel LocalTierLabel() {
  return {"tier", "`disk`; with `--tier-host-bytes` also `host`"};
}

MetricLabel TierLabel() {
  return {"tier",
          "`disk`; with `--tier-host-bytes` also `host`, with `--tier-shared` "
          "also `remote`"};
}

// Collects a metric with series for each tier of this machine. `add` adds the
// series of one tier.
template <typename Add>
Metric::Collect ByLocalTier(Add add) {
  return [add](const Snapshot& s, Samples& out) {
    if (s.host_tier.has_value()) add("host", *s.host_tier, out);
    add("disk", s.disk_tier, out);
  };
}

Metric::Collect OfLocalTier(uint64_t TierFigures::*number) {
  return ByLocalTier(
      [number](const char* tier, const TierFigures& t, Samples& out) {
        out.Add({tier}, static_cast<double>(t.*number));
      });
}

// Collects a metric with series for each tier. `add` adds the series of one
// tier.
template <typename Add>
Metric::Collect ByTier(Add add) {
  return [add](const Snapshot& s, Samples& out) {
    ByLocalTier(add)(s, out);
    if (s.remote_tier.has_value()) add("remote", *s.remote_tier, out);
  };
}

// Collects series of the pages that were stored and loaded, each page counted
// as `unit`.
template <typename Unit>
Metric::Collect ByDirection(Unit unit) {
  return ByTier([unit](const char* tier, const TierFigures& t, Samples& out) {
    const auto worth = static_cast<double>(unit(t));
    out.Add({tier, "store"}, static_cast<double>(t.stored_pages) * worth);
    out.Add({tier, "load"}, static_cast<double>(t.loaded_pages) * worth);
  });
}

void AddDropped(const char* tier, const TierFigures& figures, Samples& out) {
  out.Add({tier}, static_cast<double>(figures.dropped_pages));
}

void AddFailures(const char* tier, const TierFigures& figures, Samples& out) {
  const auto add = [&](const char* step, uint64_t count) {
    out.Add({tier, step}, static_cast<double>(count));
  };
  add("write", figures.failed_writes);
  add("read", figures.failed_reads);
  add("verify", figures.damaged_pages);
}

void AddRefused(const Snapshot& s, Samples& out) {
  if (!s.remote_tier.has_value()) return;
  out.Add({"store"}, s.remote_tier->are_stores_refused ? 1 : 0);
  out.Add({"load"}, s.remote_tier->are_loads_refused ? 1 : 0);
}

void AddMovers(const Snapshot& s, Samples& out) {
  for (const auto& [device, is_there] : s.movers) {
    out.Add({device}, is_there ? 1 : 0);
  }
}

}  // namespace

std::vector<Metric> TierMetrics() {
  return {
      Gauge("pando_tier_capacity_pages", "Pages that a tier has room for.",
            {LocalTierLabel()}, OfLocalTier(&TierFigures::capacity_pages)),
      Gauge("pando_tier_pages", "Pages of which a tier has a copy.",
            {LocalTierLabel()}, OfLocalTier(&TierFigures::held_pages)),
      Counter("pando_tier_copied_pages_total",
              "Pages copied to a tier (store), and back into the pool (load).",
              {TierLabel(), {"direction", ""}},
              ByDirection([](const TierFigures&) { return 1; })),
      Counter("pando_tier_copied_bytes_total", "The bytes of these pages.",
              {TierLabel(), {"direction", ""}},
              ByDirection([](const TierFigures& t) { return t.page_bytes; })),
      Counter("pando_tier_dropped_pages_total",
              "Pages that were not stored: the tier was too slow, they were "
              "evicted before their turn, or their prompt is too long.",
              {TierLabel()}, ByTier(AddDropped)),
      Counter("pando_tier_failures_total",
              "Copies that failed: they could not be written or read, or not "
              "in time, or what was read is not what had been stored (verify).",
              {TierLabel(), {"step", ""}}, ByTier(AddFailures)),
      Gauge("pando_tier_remote_refused",
            "1 from repeated failures of the shared store until it works "
            "again: it is tried from time to time. Only with a shared store.",
            {{"direction", "`store`, `load`"}}, AddRefused),
      Gauge("pando_tier_mover_present",
            "Whether a pando-mover copies the pages of a device; without it "
            "nothing is stored or loaded. Only where movers copy.",
            {{"device", "`host`, or a device of the pool"}}, AddMovers),
  };
}

}  // namespace pando
