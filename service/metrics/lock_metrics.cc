// The metrics of locks, and of the sessions that hold them.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

}  // namespace

std::vector<Metric> LockMetrics() {
  return {
      Gauge("pando_locks", "Locks held now.",
            [](const Snapshot& s) { return s.cache.locks; }),
      Gauge("pando_kept_bytes",
            "Memory that is kept for all sessions: prompts that locks hold, "
            "calls that wait, stored answers.",
            [](const Snapshot& s) { return s.cache.kept_bytes; }),
      Counter("pando_locks_taken_total",
              "Locks taken; less those that ended, it is the locks held.",
              [](const Snapshot& s) { return s.cache.counters.locks_taken; }),
      Counter("pando_locks_ended_total",
              "Locks ended: by their owner, with its session, or by an "
              "operator.",
              {{"reason", ""}},
              [](const Snapshot& s, Samples& out) {
                const auto& ended = s.cache.measured.ended_locks;
                const auto add = [&](const char* reason, LockEnd end) {
                  out.Add({reason}, static_cast<double>(ended[end]));
                };
                add("unlocked", LockEnd::kUnlocked);
                add("session_closed", LockEnd::kSessionClosed);
                add("session_lost", LockEnd::kSessionLost);
                add("operator", LockEnd::kOperator);
              }),
      HistogramMetric("pando_lock_hold_seconds",
                      "Of each lock that ended: how long it was held, by "
                      "tenths of a second.",
                      kHoldSeconds, {},
                      [](const Snapshot& s, Samples& out) {
                        out.Add({}, s.cache.measured.lock_hold_seconds.View());
                      }),
      Gauge("pando_oldest_lock_age_seconds",
            "How long the oldest lock has been held; 0 when there is none.",
            [](const Snapshot& s) {
              return absl::ToDoubleSeconds(s.cache.oldest_lock_age);
            }),
      Gauge("pando_sessions", "Sessions that live now.",
            [](const Snapshot& s) { return s.cache.sessions; }),
      Counter(
          "pando_sessions_opened_total",
          "Sessions opened, and those that go on from the pandod before; less "
          "those that ended, it is the sessions that live.",
          [](const Snapshot& s) { return s.cache.counters.sessions_opened; }),
      Counter("pando_sessions_ended_total",
              "Sessions ended: closed by the worker, or lost because it died "
              "or stayed away.",
              {{"reason", ""}},
              [](const Snapshot& s, Samples& out) {
                const CacheCounters& n = s.cache.counters;
                out.Add({"closed"}, static_cast<double>(n.sessions_closed));
                out.Add({"lost"}, static_cast<double>(n.sessions_lost));
              }),
  };
}

}  // namespace pando
