#ifndef PANDO_TESTS_LANE_LANE_PAIR_H_
#define PANDO_TESTS_LANE_LANE_PAIR_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "clients/lane/lane.h"
#include "service/lane/served_lane.h"

namespace pando {

inline constexpr uint32_t kArenaBytes = 64 << 10;

// Both ends of one lane. A test acts as the worker and as pandod.
class LanePair {
 public:
  explicit LanePair(uint32_t arena_bytes = kArenaBytes,
                    uint32_t slots = lane::kSlots)
      : served_(ServedLane::Create({.arena_bytes = arena_bytes,
                                    .slots = slots,
                                    .spin = absl::ZeroDuration()})
                    .value()) {
    std::string error;
    lane_ = lane::Lane::Map(served_->ShareMemory().value(),
                            served_->ShareDoorbell().value(), error);
  }

  ServedLane& served() { return *served_; }
  lane::Lane& lane() { return *lane_; }

  // Maps the memory again, for a worker that breaks the rules.
  std::byte* Scribble() {
    const UniqueFd memory = served_->ShareMemory().value();
    void* const base =
        mmap(nullptr, lane::kArenaOffset + kArenaBytes, PROT_READ | PROT_WRITE,
             MAP_SHARED, memory.get(), 0);
    scribbled_.reset(static_cast<std::byte*>(base));
    return scribbled_.get();
  }

 private:
  struct Unmap {
    void operator()(std::byte* base) const {
      munmap(base, lane::kArenaOffset + kArenaBytes);
    }
  };

  std::unique_ptr<ServedLane> served_;
  std::shared_ptr<lane::Lane> lane_;
  std::unique_ptr<std::byte, Unmap> scribbled_;
};

inline lane::Lane::Clock::time_point Soon() {
  return lane::Lane::Clock::now() + std::chrono::seconds(20);
}

inline lane::Call Request(lane::Lane& lane, std::string_view text,
                          size_t answer_bytes = 256,
                          lane::Method method = lane::Method::kInsert) {
  lane::Call call = std::move(*lane.NewCall(method, text.size(), answer_bytes));
  std::memcpy(call.request().data(), text.data(), text.size());
  return call;
}

inline std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline void AnswerWith(std::string_view text, uint32_t slot, ServedLane& served,
                       uint32_t code = 0) {
  served.Answer(slot, code, text.size(), [&](std::byte* out) {
    std::memcpy(out, text.data(), text.size());
  });
}

}  // namespace pando

#endif  // PANDO_TESTS_LANE_LANE_PAIR_H_
