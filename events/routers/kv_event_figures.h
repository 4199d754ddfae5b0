#ifndef PANDO_EVENTS_ROUTERS_KV_EVENT_FIGURES_H_
#define PANDO_EVENTS_ROUTERS_KV_EVENT_FIGURES_H_

#include <cstdint>

namespace pando {

// The figures of the event stream for routers, for the metrics. All but the
// subscribers count up from the start of the process.
struct KvEventFigures {
  uint64_t subscribers = 0;
  // Frames that were sent, one for each worker's stream, with subscribers or
  // without.
  uint64_t frames = 0;
  // Those of them that a subscriber missed because it did not read.
  uint64_t dropped_frames = 0;
  uint64_t answered_replays = 0;
  // Replays refused because the frames are not held any more.
  uint64_t refused_replays = 0;
  // How often everything that is cached was announced anew.
  uint64_t announcements = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_KV_EVENT_FIGURES_H_
