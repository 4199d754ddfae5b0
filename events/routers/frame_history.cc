#include "events/routers/frame_history.h"

#include <utility>

namespace pando {

void FrameHistory::Append(Frame frame) {
  bytes_ += frame.payload->size();
  frames_.push_back(std::move(frame));
  while (frames_.size() > limits_.frames || bytes_ > limits_.bytes) {
    bytes_ -= frames_.front().payload->size();
    frames_.pop_front();
  }
}

bool FrameHistory::HoldsAllFrom(uint64_t first) const {
  return !frames_.empty() && first >= frames_.front().sequence &&
         first <= frames_.back().sequence + 1;
}

std::optional<Frame> FrameHistory::Find(uint64_t sequence) const {
  if (frames_.empty() || sequence < frames_.front().sequence ||
      sequence > frames_.back().sequence) {
    return std::nullopt;
  }
  return frames_[sequence - frames_.front().sequence];
}

}  // namespace pando
