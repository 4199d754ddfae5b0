#ifndef PANDO_EVENTS_ROUTERS_FRAME_HISTORY_H_
#define PANDO_EVENTS_ROUTERS_FRAME_HISTORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "events/routers/frame.h"

namespace pando {

// Keeps the last frames of the stream, within its limits, for subscribers that
// ask for those they missed. Not thread-safe.
class FrameHistory {
 public:
  struct Limits {
    size_t frames;
    size_t bytes;
  };

  explicit FrameHistory(Limits limits) : limits_(limits) {}

  // REQUIRES: the number is one more than that of the frame before.
  void Append(Frame frame);

  // Returns whether all frames from number `first` to the last one are held.
  bool HoldsAllFrom(uint64_t first) const;
  // Returns none if the frame is not held.
  std::optional<Frame> Find(uint64_t sequence) const;

 private:
  const Limits limits_;
  std::deque<Frame> frames_;
  size_t bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_FRAME_HISTORY_H_
