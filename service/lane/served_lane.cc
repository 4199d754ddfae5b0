#include "service/lane/served_lane.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "base/status_macros.h"
#include "lane/futex.h"

namespace pando {
namespace {

using lane::Sleeper;
using lane::SlotState;

constexpr auto kRelaxed = std::memory_order_relaxed;

constexpr uint32_t WordOf(SlotState state) {
  return static_cast<uint32_t>(state);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServedLane>> ServedLane::Create(
    const Config& config) {
  ASSIGN_OR_RETURN(SharedMemory memory,
                   SharedMemory::Create("pando-lane",
                                        lane::kArenaOffset + config.arena_bytes,
                                        SharedMemory::Peers::kMayWrite));
  UniqueFd doorbell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!doorbell.valid()) return absl::ErrnoToStatus(errno, "eventfd");
  return absl::WrapUnique(
      new ServedLane(config, std::move(memory), std::move(doorbell)));
}

ServedLane::ServedLane(const Config& config, SharedMemory memory,
                       UniqueFd doorbell)
    : arena_bytes_(config.arena_bytes),
      slots_(config.slots),
      copied_request_bytes_(
          std::min(config.max_request_bytes, config.short_request_bytes)),
      memory_(std::move(memory)),
      doorbell_(std::move(doorbell)) {
  lane::Header& shared = header();
  shared.version = lane::kVersion;
  shared.slots = slots_;
  shared.arena_bytes = arena_bytes_;
  shared.spin_nanoseconds =
      static_cast<uint32_t>(absl::ToInt64Nanoseconds(config.spin));
  shared.magic = lane::kMagic;
}

absl::StatusOr<UniqueFd> ServedLane::ShareDoorbell() const {
  return Duplicate(doorbell_);
}

ServedLane::Next ServedLane::Take(Taken& taken) {
  const uint32_t submitted = header().submitted.load(std::memory_order_acquire);
  if (submitted == taken_) return Next::kNothing;
  if (submitted - taken_ > lane::kSlots) return Next::kBroken;
  const uint32_t index = header().ring[taken_ % lane::kSlots].load(kRelaxed);
  ++taken_;
  if (index >= slots_ ||
      answers_[index].is_busy.load(std::memory_order_acquire)) {
    return Next::kBroken;
  }

  const lane::Slot& slot = lane::SlotAt(memory_.data(), index);
  const uint32_t request_offset = slot.request_offset.load(kRelaxed);
  const uint32_t request_bytes = slot.request_bytes.load(kRelaxed);
  const uint32_t answer_offset = slot.answer_offset.load(kRelaxed);
  const uint32_t answer_capacity = slot.answer_capacity.load(kRelaxed);
  if (!IsWithinArena(request_offset, request_bytes) ||
      !IsWithinArena(answer_offset, answer_capacity)) {
    return Next::kBroken;
  }
  taken.slot = index;
  taken.method = slot.method.load(kRelaxed);
  taken.cpu = slot.cpu.load(kRelaxed);
  taken.request_offset = request_offset;
  taken.request_bytes = request_bytes;
  taken.request.clear();
  if (request_bytes <= copied_request_bytes_) CopyMore(taken, request_bytes);
  answers_[index].offset = answer_offset;
  answers_[index].capacity = answer_capacity;
  answers_[index].is_busy.store(true, kRelaxed);
  return Next::kCall;
}

void ServedLane::CopyMore(Taken& taken, size_t most) const {
  const size_t copied = taken.request.size();
  taken.request.reserve(taken.request_bytes);
  const std::byte* const rest =
      lane::ArenaAt(memory_.data()) + taken.request_offset + copied;
  taken.request.append(reinterpret_cast<const char*>(rest),
                       std::min(most, taken.request_bytes - copied));
}

void ServedLane::SetAwake(bool is_awake) {
  header().awake.store(is_awake ? 1 : 0, kRelaxed);
  // Either pandod sees a call when it looks once more, or the caller sees this.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ServedLane::Publish(uint32_t index, SlotState state, uint32_t code,
                         size_t bytes) {
  answers_[index].is_busy.store(false, std::memory_order_release);
  lane::Slot& slot = lane::SlotAt(memory_.data(), index);
  slot.code.store(code, kRelaxed);
  slot.answer_bytes.store(static_cast<uint32_t>(bytes), kRelaxed);
  slot.state.store(WordOf(state), std::memory_order_release);
  // Either this thread sees who sleeps, or they see the answer before they
  // sleep.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  switch (static_cast<Sleeper>(slot.sleeper.load(kRelaxed))) {
    case Sleeper::kNobody:
      break;
    case Sleeper::kOnSlot:
      lane::FutexWake(slot.state, lane::kSleepersOnSlot);
      break;
    case Sleeper::kOnLane:
      CountAnswer();
      break;
  }
}

// Uses plain loads and stores: an atomic addition may be a loop, which a worker
// that keeps writing could hold up.
void ServedLane::CountAnswer() {
  header().answers.store(header().answers.load(kRelaxed) + 1,
                         std::memory_order_release);
  lane::FutexWake(header().answers, lane::kSlots);
}

void ServedLane::Close() {
  header().closed.store(1, kRelaxed);
  // A worker submits a call, and then looks whether the lane is closed. So
  // either the worker sees that, or this loop sees the call.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < slots_; ++i) {
    lane::Slot& slot = lane::SlotAt(memory_.data(), i);
    if (slot.state.load(kRelaxed) != WordOf(SlotState::kSubmitted)) continue;
    slot.state.store(WordOf(SlotState::kClosed), std::memory_order_release);
    lane::FutexWake(slot.state, lane::kSleepersOnSlot);
  }
  CountAnswer();
}

void ServedLane::DiscardArena() {
  // The flag is set before the first zero: a worker reads an answer first, and
  // then the flag.
  header().discarded.store(1, std::memory_order_seq_cst);
  memory_.Discard(lane::kArenaOffset);
}

}  // namespace pando
