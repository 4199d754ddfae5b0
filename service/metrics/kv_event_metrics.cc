// The metrics of the events that routers get over ZeroMQ.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

}  // namespace

std::vector<Metric> KvEventMetrics() {
  return {
      Gauge("pando_kv_event_subscribers",
            "Subscriptions to the events of --kv-events.",
            [](const Snapshot& s) { return s.kv_events.subscribers; }),
      Counter("pando_kv_event_frames_total",
              "Frames of events sent, one for each worker's stream, whether or "
              "not a router subscribes to it.",
              [](const Snapshot& s) { return s.kv_events.frames; }),
      Counter("pando_kv_event_dropped_frames_total",
              "Of those: frames that some subscriber did not get because it "
              "reads too slowly.",
              [](const Snapshot& s) { return s.kv_events.dropped_frames; }),
      Counter("pando_kv_event_replays_total",
              "Requests for missed frames: answered, or refused because the "
              "frames are not held any more, upon which all that is cached is "
              "announced.",
              {{"result", ""}},
              [](const Snapshot& s, Samples& out) {
                const auto add = [&](const char* result, uint64_t count) {
                  out.Add({result}, static_cast<double>(count));
                };
                add("answered", s.kv_events.answered_replays);
                add("refused", s.kv_events.refused_replays);
              }),
      Counter("pando_kv_event_announcements_total",
              "Times that all that is cached was announced.",
              [](const Snapshot& s) { return s.kv_events.announcements; }),
  };
}

}  // namespace pando
