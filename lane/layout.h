// The memory of a lane: what a worker and pandod share so that a call needs no
// socket. docs/protocol.md explains it to those who implement it themselves.
//
// A lane is one sealed memfd, mapped by both sides:
//
//   offset 0      Header
//   kSlotsOffset  Slot[kSlots]
//   kArenaOffset  the arena: `arena_bytes` bytes for requests and answers
//
// The worker decides what lies where in the arena; pandod only reads the
// request and writes the answer where a slot says. So nothing has to be given
// back to pandod, and pandod never waits for a worker.
//
// A call goes so:
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
// pandod takes every word that a worker can write for what it is: input. What
// does not obey these rules closes the lane.
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

// A power of two.
inline constexpr uint32_t kSlots = 64;
inline constexpr uint32_t kCacheLine = 64;

// The methods of calls in slots: field numbers of pando.v1.BatchedRequest.
enum class Method : uint32_t {
#define PANDO_METHOD(number, field, service, name, role, kind) \
  k##name = (number),
  PANDO_DATA_PATH_METHODS(PANDO_METHOD)
#undef PANDO_METHOD
};

enum class SlotState : uint32_t {
  kFree = 0,
  // The worker has filled it in; it is pandod's until it is answered.
  kSubmitted = 1,
  // `code` and `answer_bytes` are those of the answer.
  kAnswered = 2,
  // The call was carried out, but its answer has `answer_bytes` bytes, which is
  // more than there is room for. A call with a request id is answered again
  // over gRPC; of a call without one it is not known what it did.
  kTooLarge = 3,
  // The lane is closed: there will be no answer.
  kClosed = 4,
};

// How the worker sleeps until a slot is answered.
enum class Sleeper : uint32_t {
  kNobody = 0,
  // A futex wait on the slot's `state`.
  kOnSlot = 1,
  // A futex wait on the lane's `answers`, for any of its slots.
  kOnLane = 2,
};

// One call.
struct alignas(kCacheLine) Slot {
  SharedWord state;  // SlotState; a futex
  // Written by the worker.
  SharedWord sleeper;  // Sleeper
  SharedWord method;   // Method
  SharedWord request_offset;
  SharedWord request_bytes;
  SharedWord answer_offset;
  SharedWord answer_capacity;
  // The CPU that the caller runs on: pandod does not spin there.
  SharedWord cpu;
  // Written by pandod.
  SharedWord
      code;  // google.rpc.Code; unless 0, the answer is google.rpc.Status
  SharedWord answer_bytes;
};
static_assert(sizeof(Slot) == kCacheLine);

struct Header {
  // Written by pandod before it shares the memory with the worker.
  SharedWord magic;
  SharedWord version;
  SharedWord slots;  // how many may be used, at most kSlots
  SharedWord arena_bytes;
  // How long pandod spins for a call before it sleeps; a caller may spin as
  // long for its answer.
  SharedWord spin_nanoseconds;

  // Written by pandod.
  alignas(kCacheLine) SharedWord awake;  // 1: it polls `submitted`: do not ring
  SharedWord cpu;                        // the CPU that it runs on
  SharedWord closed;                     // 1: it serves no more calls
  SharedWord answers;                    // how many there were; a futex
  SharedWord discarded;  // 1: what was in the arena is gone, or soon will be

  // Written by the worker: how many calls it has published, and a ring of their
  // slots.
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

// The parts of a lane whose memory is mapped at `base`.
inline Header& HeaderAt(std::byte* base) {
  return *reinterpret_cast<Header*>(base);
}
inline Slot& SlotAt(std::byte* base, uint32_t index) {
  return reinterpret_cast<Slot*>(base + kSlotsOffset)[index];
}
inline std::byte* ArenaAt(std::byte* base) { return base + kArenaOffset; }

}  // namespace pando::lane

#endif  // PANDO_LANE_LAYOUT_H_
