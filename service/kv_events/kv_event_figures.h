#ifndef PANDO_SERVICE_KV_EVENTS_KV_EVENT_FIGURES_H_
#define PANDO_SERVICE_KV_EVENTS_KV_EVENT_FIGURES_H_

#include <cstdint>

namespace pando {

// What the metrics say of the events for routers. All but the subscribers count
// up from the start of the process.
struct KvEventFigures {
  uint64_t subscribers = 0;
  // Sent, one for each worker's stream, whether or not somebody subscribes.
  uint64_t frames = 0;
  // Of those: not sent to somebody who does not read.
  uint64_t dropped_frames = 0;
  uint64_t answered_replays = 0;
  // Those for frames that are not held any more.
  uint64_t refused_replays = 0;
  // Of everything that is cached.
  uint64_t announcements = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_KV_EVENT_FIGURES_H_
