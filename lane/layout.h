// The memory of a lane, which a worker and pandod share so that a call needs no
// socket. docs/protocol.md describes it for other implementations.
//
// A lane is one sealed memfd, mapped by both sides:
//
//   offset 0      Header
//   kSlotsOffset  Slot[kSlots]
//   kArenaOffset  the arena: `arena_bytes` bytes for requests and answers
//
// Only the worker manages the arena; pandod reads the request and writes the
// answer where the slot says. So the worker has nothing to give back to pandod,
// and pandod never waits for a worker.
//
// A call takes these steps:
//   1. The worker chooses a slot that is free and two ranges of the arena,
//      fills in both the request and the slot, and sets the state to
//      kSubmitted.
//   2. It writes the slot's number to ring[submitted % kSlots] and adds one to
//      `submitted`. Several calls may be published by one addition; pandod
//      begins them in the order of the ring.
//   3. If `awake` is 0 it writes to the doorbell, an eventfd.
//   4. pandod copies the slot and the request, carries out the call, writes the
//      answer and sets the state to kAnswered or kTooLarge. Answers may come in
//      another order than the calls.
//   5. A worker that wants to sleep meanwhile writes `sleeper` first, and looks
//      at the state once more. pandod wakes one thread that sleeps on the slot,
//      and at most kSlots threads that sleep on the lane.
//   6. A worker that has read an answer looks at `discarded`: if that is 1, it
//      may have read zeros, and there is no answer.
//
// To pandod, every word that a worker can write is untrusted input. If a worker
// breaks these rules, pandod closes the lane.
#ifndef PANDO_LANE_LAYOUT_H_
#define PANDO_LANE_LAYOUT_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/methods.h"

namespace pando::lane {

static_assert(std::endian::native == std::endian::little,
              "the memory of a lane is little endian");

// A word that the other process reads or writes at any time.
using SharedWord = std::atomic<uint32_t>;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == 4);

inline constexpr uint32_t kMagic = 0x4c444e50;  // "PNDL"
inline constexpr uint32_t kVersion = 1;

// The number of slots in a lane's memory, a power of two.
inline constexpr uint32_t kSlots = 64;
inline constexpr uint32_t kCacheLine = 64;

// The method of a call in a slot. The numbers are field numbers of
// pando.v1.BatchedRequest.
enum class Method : uint32_t {
#define PANDO_METHOD(number, field, service, name, role, kind) \
  k##name = (number),
  PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
};

enum class SlotState : uint32_t {
  kFree = 0,
  // The worker has filled the slot in. It belongs to pandod until pandod
  // answers.
  kSubmitted = 1,
  // The answer is in the arena; `code` and `answer_bytes` describe it.
  kAnswered = 2,
  // The call was carried out, but its answer has `answer_bytes` bytes, more
  // than the slot has room for. If the call has a request id, the worker can
  // repeat it over gRPC to get the answer. Otherwise the worker cannot know
  // what the call did.
  kTooLarge = 3,
  // The lane is closed, and there will be no answer.
  kClosed = 4,
};

// How the worker sleeps until a slot is answered.
enum class Sleeper : uint32_t {
  kNobody = 0,
  // The worker waits on the futex `state` of the slot.
  kOnSlot = 1,
  // The worker waits on the futex `answers` of the lane, for any of its slots.
  kOnLane = 2,
};

// A slot: the room for one call.
struct alignas(kCacheLine) Slot {
  SharedWord state;  // SlotState; a futex
  // Written by the worker. Offsets count from the start of the arena.
  SharedWord sleeper;  // Sleeper
  SharedWord method;   // Method
  SharedWord request_offset;
  SharedWord request_bytes;
  SharedWord answer_offset;
  SharedWord answer_capacity;
  // The CPU on which the caller runs; pandod does not spin on that CPU.
  SharedWord cpu;
  // Written by pandod.
  // A google.rpc.Code. Unless it is 0, the answer is a google.rpc.Status.
  SharedWord code;
  SharedWord answer_bytes;
};
static_assert(sizeof(Slot) == kCacheLine);

struct Header {
  // Written by pandod before it shares the memory with the worker.
  SharedWord magic;
  SharedWord version;
  SharedWord slots;  // how many slots may be used, at most kSlots
  SharedWord arena_bytes;
  // How long pandod spins for a call before it sleeps. A caller may spin as
  // long for its answer.
  SharedWord spin_nanoseconds;

  // Written by pandod.
  // 1: pandod polls `submitted`, so do not ring.
  alignas(kCacheLine) SharedWord awake;
  SharedWord cpu;     // the CPU on which pandod runs
  SharedWord closed;  // 1: pandod serves no more calls
  // Counts the answers to calls whose sleeper is kOnLane, and the closing of
  // the lane; a futex.
  SharedWord answers;
  SharedWord discarded;  // 1: what was in the arena is gone, or soon will be

  // Written by the worker: how many calls it has published, and a ring with the
  // numbers of their slots.
  alignas(kCacheLine) SharedWord submitted;
  alignas(kCacheLine) std::atomic<uint8_t> ring[kSlots];
};

inline constexpr size_t kSlotsOffset = 4096;
inline constexpr size_t kArenaOffset = kSlotsOffset + kSlots * sizeof(Slot);
static_assert(sizeof(Header) <= kSlotsOffset);
static_assert(offsetof(Header, awake) == 64);
static_assert(offsetof(Header, discarded) == 80);
static_assert(offsetof(Header, submitted) == 128);
static_assert(offsetof(Header, ring) == 192);

// The parts of a lane's memory that is mapped at `base`.
inline Header& HeaderAt(std::byte* base) {
  return *reinterpret_cast<Header*>(base);
}
inline Slot& SlotAt(std::byte* base, uint32_t index) {
  return reinterpret_cast<Slot*>(base + kSlotsOffset)[index];
}
inline std::byte* ArenaAt(std::byte* base) { return base + kArenaOffset; }

}  // namespace pando::lane

#endif  // PANDO_LANE_LAYOUT_H_
