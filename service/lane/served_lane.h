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

// pandod's end of one lane: it takes calls out of memory that a worker may
// overwrite at any time, and puts answers in. It reads each word of the worker
// once, checks it, and only then uses it. It keeps what it must remember
// outside of the shared memory. So a worker can spoil its own lane, and nothing
// else.
//
// Owned by LaneConnection. One thread takes calls. Any thread may answer calls
// that were taken, each call once.
class ServedLane {
 public:
  struct Config {
    uint32_t arena_bytes = 0;
    uint32_t slots = lane::kSlots;  // how many slots may be used
    // A request longer than this is not copied at all.
    uint32_t max_request_bytes = UINT32_MAX;
    // Take copies requests up to this size; CopyMore copies longer ones in
    // parts.
    uint32_t short_request_bytes = UINT32_MAX;
    absl::Duration spin;  // how long the worker may spin for an answer
  };

  // A call that was taken. Its slot is busy until it is answered.
  struct Taken {
    uint32_t slot = 0;
    uint32_t method = 0;  // as the worker wrote it; may be unknown
    uint32_t cpu = 0;     // on which the caller says it ran
    uint32_t request_offset = 0;
    uint32_t request_bytes = 0;
    // The bytes copied so far; Take leaves it empty unless the request is
    // short. The string is reused from call to call.
    std::string request;
  };

  enum class Next { kCall, kNothing, kBroken };

  // Makes the memory and the doorbell of a lane, or returns why it cannot.
  static absl::StatusOr<std::unique_ptr<ServedLane>> Create(
      const Config& config);

  // Return descriptors for the worker: of the memory, and of the doorbell.
  absl::StatusOr<UniqueFd> ShareMemory() const { return memory_.Share(); }
  absl::StatusOr<UniqueFd> ShareDoorbell() const;
  // The doorbell's descriptor, which is readable when the worker has rung.
  int doorbell() const { return doorbell_.get(); }

  // Takes the next call that the worker submitted. Returns kNothing if there is
  // none. After kBroken, Take must not be called again: the worker broke the
  // protocol.
  Next Take(Taken& taken);
  // Copies up to `most` more bytes of the request of a call that was taken.
  void CopyMore(Taken& taken, size_t most) const;
  // Returns whether a call was submitted and not taken yet.
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

  // Answers the call of a busy slot with `code`, an absl::StatusCode. If the
  // worker left room for `bytes` bytes, void write(std::byte*) writes them
  // there. Otherwise the worker learns that the answer is too large.
  template <typename Write>
  void Answer(uint32_t slot, uint32_t code, size_t bytes, Write&& write) {
    if (bytes <= answers_[slot].capacity) {
      write(lane::ArenaAt(memory_.data()) + answers_[slot].offset);
      Publish(slot, lane::SlotState::kAnswered, code, bytes);
    } else {
      Publish(slot, lane::SlotState::kTooLarge, code, bytes);
    }
  }

  // Tells the worker that there will be no more answers, and wakes its waiting
  // threads.
  void Close();
  // Gives the memory of the arena back to the system. To be called after Close,
  // once the worker has had time to read answers: otherwise the pages that
  // pandod has written would stay as long as the worker keeps the lane. A
  // worker that reads an answer later learns that it reads zeros.
  void DiscardArena();

 private:
  // Where the answer of a busy slot goes. It is copied from the shared memory
  // once, and checked.
  struct AnswerRoom {
    std::atomic<bool> is_busy = false;
    uint32_t offset = 0;  // both change only while the slot is not busy
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
  const uint32_t copied_request_bytes_;  // Take copies no larger requests
  SharedMemory memory_;
  const UniqueFd doorbell_;
  uint32_t taken_ = 0;  // how many submitted calls were taken
  std::array<AnswerRoom, lane::kSlots> answers_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_LANE_SERVED_LANE_H_
