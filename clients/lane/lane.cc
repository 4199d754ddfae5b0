#include "clients/lane/lane.h"

#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "lane/futex.h"
#include "lane/pause.h"

namespace pando::lane {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
// How often a spinning caller looks for its answer before it looks at the clock
// again.
constexpr int kSpins = 32;
// A sleeper looks for its answer at least this often, in case it is not woken.
constexpr std::chrono::milliseconds kLongestSleep{100};

constexpr uint32_t WordOf(SlotState state) {
  return static_cast<uint32_t>(state);
}

constexpr size_t RoundUp(size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

uint32_t ThisCpu() { return static_cast<uint32_t>(sched_getcpu()); }

// Returns how many forks lie between the process that opened the first lane and
// this one. Only a child's number grows, so it differs from its parent's.
// Reading it takes no system call.
uint32_t Forks() {
  static std::atomic<uint32_t> forks = 0;
  static const int counted =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, kRelaxed); });
  return counted == 0 ? forks.load(kRelaxed) : 0;
}

}  // namespace

std::shared_ptr<Lane> Lane::Map(const UniqueFd& memory, UniqueFd doorbell,
                                std::string& error) {
  struct stat file = {};
  if (fstat(memory.get(), &file) != 0 ||
      file.st_size <= static_cast<off_t>(kArenaOffset)) {
    error = "the lane is no memory, or too small";
    return nullptr;
  }
  const auto bytes = static_cast<size_t>(file.st_size);
  void* const base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  if (base == MAP_FAILED) {
    error = std::string("the lane cannot be mapped: ") + std::strerror(errno);
    return nullptr;
  }
  std::shared_ptr<Lane> lane(
      new Lane(static_cast<std::byte*>(base), bytes, std::move(doorbell)));
  const Header& header = lane->header();
  if (header.magic != kMagic || header.version != kVersion ||
      header.arena_bytes > bytes - kArenaOffset) {
    error = "the lane has version " + std::to_string(header.version) +
            "; this client knows version " + std::to_string(kVersion);
    return nullptr;
  }
  return lane;
}

Lane::Lane(std::byte* base, size_t bytes, UniqueFd doorbell)
    : base_(base),
      bytes_(bytes),
      doorbell_(std::move(doorbell)),
      slots_(std::min(HeaderAt(base).slots.load(), kSlots)),
      forks_(Forks()),
      arena_(HeaderAt(base).arena_bytes, kSlots) {}

Lane::~Lane() { munmap(base_, bytes_); }

std::optional<Call> Lane::NewCall(Method method, size_t request_bytes,
                                  size_t answer_bytes) {
  if (is_inherited()) return std::nullopt;
  const std::lock_guard hold(mutex_);
  if (is_closed()) return std::nullopt;
  if (abandoned_ > 0) ReleaseAbandoned();
  Place* const end = places_ + slots_;
  Place* const place = std::find_if(
      places_, end, [](const Place& each) { return !each.is_used; });
  if (place == end) return std::nullopt;
  const size_t answer_begin = RoundUp(request_bytes);
  const std::optional<size_t> offset = arena_.Take(answer_begin + answer_bytes);
  if (!offset.has_value()) return std::nullopt;
  *place = {.is_used = true, .is_abandoned = false, .offset = *offset};

  const auto index = static_cast<uint32_t>(place - places_);
  Slot& filled = slot(index);
  filled.sleeper.store(static_cast<uint32_t>(Sleeper::kNobody), kRelaxed);
  filled.method.store(static_cast<uint32_t>(method), kRelaxed);
  filled.request_offset.store(static_cast<uint32_t>(*offset), kRelaxed);
  filled.request_bytes.store(static_cast<uint32_t>(request_bytes), kRelaxed);
  filled.answer_offset.store(static_cast<uint32_t>(*offset + answer_begin),
                             kRelaxed);
  filled.answer_capacity.store(static_cast<uint32_t>(answer_bytes), kRelaxed);
  return Call(shared_from_this(), index, *offset, request_bytes);
}

void Lane::Submit(std::span<Call* const> calls) {
  const uint32_t cpu = ThisCpu();
  {
    const std::lock_guard hold(mutex_);
    uint32_t submitted = header().submitted.load(kRelaxed);
    for (const Call* call : calls) {
      Slot& filled = slot(call->index_);
      filled.cpu.store(cpu, kRelaxed);
      filled.state.store(WordOf(SlotState::kSubmitted), kRelaxed);
      header().ring[submitted++ % kSlots].store(
          static_cast<uint8_t>(call->index_), kRelaxed);
    }
    header().submitted.store(submitted, std::memory_order_release);
  }
  // Because of this fence, either pandod sees the calls after it has said that
  // it sleeps, or this thread sees that it sleeps. The same holds when pandod
  // closes the lane.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (is_closed()) {
    Close();
  } else if (header().awake.load(kRelaxed) == 0) {
    eventfd_write(doorbell_.get(), 1);
  }
}

bool Lane::is_inherited() const { return Forks() != forks_; }

void Lane::Close() {
  if (is_inherited()) return;
  header().closed.store(1, std::memory_order_seq_cst);
  for (uint32_t i = 0; i < slots_; ++i) {
    uint32_t submitted = WordOf(SlotState::kSubmitted);
    if (slot(i).state.compare_exchange_strong(submitted,
                                              WordOf(SlotState::kClosed))) {
      FutexWake(slot(i).state, kSleepersOnSlot);
    }
  }
  header().answers.fetch_add(1);
  FutexWake(header().answers, kSlots);
}

void Lane::AwaitAnswers(uint32_t seen, std::chrono::nanoseconds limit) const {
  FutexWait(header().answers, seen,
            std::min<std::chrono::nanoseconds>(limit, kLongestSleep));
}

void Lane::Release(uint32_t index, size_t offset) {
  if (is_inherited()) return;
  const std::lock_guard hold(mutex_);
  if (IsSubmitted(index)) {
    places_[index].is_abandoned = true;
    ++abandoned_;
    return;
  }
  Free(index, offset);
}

void Lane::Free(uint32_t index, size_t offset) {
  slot(index).state.store(WordOf(SlotState::kFree), kRelaxed);
  arena_.GiveBack(offset);
  places_[index] = {};
}

void Lane::ReleaseAbandoned() {
  for (uint32_t i = 0; i < slots_; ++i) {
    if (!places_[i].is_abandoned || IsSubmitted(i)) continue;
    Free(i, places_[i].offset);
    --abandoned_;
  }
}

std::optional<Call::Outcome> Call::Poll() const {
  switch (
      static_cast<SlotState>(slot().state.load(std::memory_order_acquire))) {
    case SlotState::kSubmitted:
      return std::nullopt;
    case SlotState::kAnswered:
      return Outcome::kAnswered;
    case SlotState::kTooLarge:
      return Outcome::kTooLarge;
    default:
      return Outcome::kClosed;
  }
}

Call::Outcome Call::Await(Lane::Clock::time_point deadline) {
  const Header& header = lane_->header();
  std::optional<Outcome> outcome = Poll();
  // pandod cannot answer while this thread spins on the same CPU.
  if (!outcome && header.cpu.load(kRelaxed) != ThisCpu()) {
    const auto spin_end = std::min(
        deadline,
        Lane::Clock::now() +
            std::chrono::nanoseconds(header.spin_nanoseconds.load(kRelaxed)));
    while (!outcome && Lane::Clock::now() < spin_end) {
      for (int i = 0; i < kSpins && !(outcome = Poll()); ++i) Pause();
    }
  }
  while (!outcome) {
    slot().sleeper.store(static_cast<uint32_t>(Sleeper::kOnSlot), kRelaxed);
    // Because of this fence, either pandod sees the sleeper after it has
    // answered, or this thread sees the answer.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if ((outcome = Poll())) break;
    const auto left = deadline - Lane::Clock::now();
    if (left <= std::chrono::nanoseconds::zero()) return Outcome::kTimedOut;
    FutexWait(slot().state, WordOf(SlotState::kSubmitted),
              std::min<std::chrono::nanoseconds>(left, kLongestSleep));
    outcome = Poll();
  }
  return *outcome;
}

bool Call::WakeLane() {
  slot().sleeper.store(static_cast<uint32_t>(Sleeper::kOnLane), kRelaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !Poll();
}

uint32_t Call::code() const { return slot().code.load(kRelaxed); }

std::span<const std::byte> Call::answer() const {
  const Slot& answered = slot();
  return {ArenaAt(lane_->base_) + answered.answer_offset.load(kRelaxed),
          answered.answer_bytes.load(kRelaxed)};
}

bool Call::HasIntactAnswer() const {
  // All reads of the answer come before this one.
  std::atomic_thread_fence(std::memory_order_acquire);
  return lane_->header().discarded.load(kRelaxed) == 0;
}

}  // namespace pando::lane
