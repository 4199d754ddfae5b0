#ifndef PANDO_SERVICE_KV_EVENTS_FRAME_HISTORY_H_
#define PANDO_SERVICE_KV_EVENTS_FRAME_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "service/kv_events/frame.h"

namespace pando {

// The last frames of the stream, for subscribers that ask for those they
// missed. Holds no more than its limits. Not thread-safe.
class FrameHistory {
 public:
  struct Limits {
    size_t frames;
    size_t bytes;
  };

  explicit FrameHistory(Limits limits) : limits_(limits) {}

  // REQUIRES: its number is one more than that of the frame before.
  void Append(Frame frame);

  // All frames from number `first` on are held, up to and including the last.
  bool HoldsAllFrom(uint64_t first) const;
  // None: it is not held.
  std::optional<Frame> Find(uint64_t sequence) const;

 private:
  const Limits limits_;
  std::deque<Frame> frames_;
  size_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_FRAME_HISTORY_H_
