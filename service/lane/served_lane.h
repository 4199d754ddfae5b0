#ifndef PANDO_SERVICE_LANE_SERVED_LANE_H_
#define PANDO_SERVICE_LANE_SERVED_LANE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "lane/layout.h"
#include "os/shared_memory.h"

namespace pando {

// pandod's end of one lane: takes calls out of memory that a worker may
// scribble over at any time, and puts answers in. Every word of the worker's is
// read once, checked, and only then used; what pandod must remember it keeps
// outside. So a worker can spoil its own lane, and nothing else.
//
// Owned by LaneConnection. One thread takes calls; any thread may answer those
// that were taken, each once.
class ServedLane {
 public:
  struct Config {
    uint32_t arena_bytes = 0;
    uint32_t slots = lane::kSlots;  // how many may be used
    // Larger requests are not copied.
    uint32_t max_request_bytes = UINT32_MAX;
    // Larger ones are left to CopyMore.
    uint32_t short_request_bytes = UINT32_MAX;
    absl::Duration spin;  // how long the worker may spin
  };

  // A call that was taken. Its slot is busy until it is answered.
  struct Taken {
    uint32_t slot = 0;
    uint32_t method = 0;  // as the worker wrote it: may be unknown
    uint32_t cpu = 0;     // the one that the caller says it ran on
    uint32_t request_offset = 0;
    uint32_t request_bytes = 0;
    // Reused from call to call; empty if it is too large or not short.
    std::string request;
  };

  enum class Next { kCall, kNothing, kBroken };

  static absl::StatusOr<std::unique_ptr<ServedLane>> Create(
      const Config& config);

  // Descriptors for the worker: one of the memory, one of the doorbell.
  absl::StatusOr<UniqueFd> ShareMemory() const { return memory_.Share(); }
  absl::StatusOr<UniqueFd> ShareDoorbell() const;
  // Readable when the worker has rung.
  int doorbell() const { return doorbell_.get(); }

  // Takes the next call that the worker published. kBroken: the worker broke
  // the protocol, and Take must not be called again.
  Next Take(Taken& taken);
  // Copies up to `most` more bytes of the request of a call that was taken.
  void CopyMore(Taken& taken, size_t most) const;
  // Whether a published call was not taken yet.
  bool HasCalls() const {
    return header().submitted.load(std::memory_order_relaxed) != taken_;
  }

  // Tells the worker whether pandod polls the lane, so that it need not ring.
  // After SetAwake(false), call HasCalls once more before going to sleep.
  void SetAwake(bool is_awake);
  // Tells the worker which CPU serves its calls.
  void SetCpu(uint32_t cpu) {
    header().cpu.store(cpu, std::memory_order_relaxed);
  }

  // Answers the call of a busy slot. If the worker left room for `bytes` bytes,
  // void write(std::byte*) writes them there; otherwise the worker learns that
  // the answer is too large.
  template <typename Write>
  void Answer(uint32_t slot, uint32_t code, size_t bytes, Write&& write) {
    if (bytes <= answers_[slot].capacity) {
      write(lane::ArenaAt(memory_.data()) + answers_[slot].offset);
      Publish(slot, lane::SlotState::kAnswered, code, bytes);
    } else {
      Publish(slot, lane::SlotState::kTooLarge, code, bytes);
    }
  }

  // Tells the worker that nobody answers any more, and wakes its waiting
  // threads.
  void Close();
  // After Close, once nobody reads answers any more: what pandod has written is
  // its memory, as long as a worker keeps the lane. Who reads later learns that
  // it reads zeros.
  void DiscardArena();

 private:
  // Where the answer of a busy slot goes: copied from the shared memory once,
  // and checked.
  struct AnswerRoom {
    std::atomic<bool> is_busy = false;
    uint32_t offset = 0;  // both are written only while it is not busy
    uint32_t capacity = 0;
  };

  ServedLane(const Config& config, SharedMemory memory, UniqueFd doorbell);

  lane::Header& header() const { return lane::HeaderAt(memory_.data()); }
  bool IsWithinArena(uint32_t offset, uint32_t bytes) const {
    return offset <= arena_bytes_ && bytes <= arena_bytes_ - offset;
  }
  void Publish(uint32_t slot, lane::SlotState state, uint32_t code,
               size_t bytes);
  void CountAnswer();

  const uint32_t arena_bytes_;
  const uint32_t slots_;
  const uint32_t copied_request_bytes_;  // Take copies no larger ones
  SharedMemory memory_;
  const UniqueFd doorbell_;
  uint32_t taken_ = 0;  // how many of header().submitted were taken
  std::array<AnswerRoom, lane::kSlots> answers_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_SERVED_LANE_H_
