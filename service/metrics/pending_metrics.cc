// The metrics of single flight: computations that were not done twice.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

}  // namespace

std::vector<Metric> PendingMetrics() {
  return {
      Gauge("pando_pending_matches",
            "Matches that wait now for a page that another call computes.",
            [](const Snapshot& s) { return s.cache.waits; }),
      Counter("pando_pending_waits_total",
              "Waits of matches for a page that another call computed.",
              [](const Snapshot& s) { return s.cache.counters.pending_waits; }),
      Counter("pando_pending_waits_ended_total",
              "Those that have ended: the page was published (or loaded from a "
              "tier), which saved its computation; or was given up; or did not "
              "come in time.",
              {{"outcome", ""}},
              [](const Snapshot& s, Samples& out) {
                const CacheCounters& n = s.cache.counters;
                const auto add = [&](const char* outcome, uint64_t count) {
                  out.Add({outcome}, static_cast<double>(count));
                };
                add("published", n.pending_waits_published);
                add("given_up", n.pending_waits_given_up);
                add("timed_out", n.pending_waits_timed_out);
              }),
      HistogramMetric("pando_pending_wait_seconds",
                      "Time that matches waited for a page that another call "
                      "computed.",
                      kPendingWaitSeconds, {},
                      [](const Snapshot& s, Samples& out) {
                        out.Add({}, s.pending_wait_seconds.View());
                      }),
  };
}

}  // namespace pando
