#ifndef PANDO_CLIENTS_LANE_LANE_H_
#define PANDO_CLIENTS_LANE_LANE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "clients/lane/arena.h"
#include "lane/layout.h"

namespace pando::lane {

class Call;

// The worker's end of a lane: carries requests to pandod and answers back
// through shared memory. It knows bytes and no messages, and needs nothing but
// the standard library, so that every client can be built on it.
//
// Shared by the client and the calls that run. Thread-safe. It stays mapped
// until the last call is gone, whatever becomes of pandod.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  using Clock = std::chrono::steady_clock;

  // Null, and why, if that is no lane that this library knows.
  static std::shared_ptr<Lane> Map(const UniqueFd& memory, UniqueFd doorbell,
                                   std::string& error);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Room for a request of this size and an answer of at most that size. None:
  // it does not fit at present, or the lane is closed; the call must go another
  // way.
  std::optional<Call> NewCall(Method method, size_t request_bytes,
                              size_t answer_bytes);

  // Publishes calls, whose requests are written, in this order and with one
  // doorbell.
  void Submit(std::span<Call* const> calls);

  // Nobody answers any more: every call that is not answered ends with kClosed,
  // and there are no new ones. Idempotent.
  void Close();
  bool is_closed() const {
    return header().closed.load(std::memory_order_acquire) != 0;
  }

  // For who waits for any call of the lane: how many answers there have been,
  // and a sleep until there are more than `seen`, at most for `limit`. Only
  // calls that were told to WakeLane count.
  uint32_t answers() const {
    return header().answers.load(std::memory_order_acquire);
  }
  void AwaitAnswers(uint32_t seen, std::chrono::nanoseconds limit) const;

 private:
  friend class Call;

  Lane(std::byte* base, size_t bytes, UniqueFd doorbell);

  Header& header() const { return HeaderAt(base_); }
  Slot& slot(uint32_t index) const { return SlotAt(base_, index); }
  bool IsSubmitted(uint32_t index) const {
    return slot(index).state.load(std::memory_order_acquire) ==
           static_cast<uint32_t>(SlotState::kSubmitted);
  }
  // Of a call that ended, or was never submitted; of one that was given up,
  // once pandod has answered it.
  void Release(uint32_t index, size_t offset);
  void ReleaseAbandoned();

  struct Place {
    bool is_used = false;
    bool is_abandoned = false;  // its caller is gone, its answer is not there
    size_t offset = 0;
  };

  std::byte* const base_;
  const size_t bytes_;
  const UniqueFd doorbell_;
  const uint32_t slots_;
  std::mutex mutex_;  // of what follows, and of the words that publish calls
  Arena arena_;
  Place places_[kSlots];
  uint32_t abandoned_ = 0;
};

// One call on a lane: its place there, from before it is submitted until its
// answer was read. Move-only; thread-compatible.
class Call {
 public:
  enum class Outcome {
    kAnswered,
    // It was carried out, but the answer needs more room than was given.
    kTooLarge,
    kTimedOut,
    // There will be no answer; pandod may have carried the call out.
    kClosed,
  };

  Call(Call&& other) noexcept
      : lane_(std::move(other.lane_)),
        index_(other.index_),
        offset_(other.offset_),
        request_bytes_(other.request_bytes_) {}
  Call& operator=(Call&&) = delete;
  ~Call() {
    if (lane_ != nullptr) lane_->Release(index_, offset_);
  }

  // To be written before the call is submitted.
  std::span<std::byte> request() const {
    return {ArenaAt(lane_->base_) + offset_, request_bytes_};
  }
  // The one that it is on.
  Lane& lane() const { return *lane_; }
  void Submit() {
    Call* self = this;
    lane_->Submit({&self, 1});
  }

  // Sleeps until the call has an outcome, at the latest at `deadline`; may be
  // called again after kTimedOut.
  Outcome Await(Lane::Clock::time_point deadline);
  // The same without any sleep.
  std::optional<Outcome> Poll() const;
  // From now on the answer counts for AwaitAnswers, unless it is there already.
  // False: it is.
  bool WakeLane();

  // After kAnswered: google.rpc.Code, and the answer's message, or with an
  // error google.rpc.Status. Valid as long as the call.
  uint32_t code() const;
  std::span<const std::byte> answer() const;

 private:
  friend class Lane;

  Call(std::shared_ptr<Lane> lane, uint32_t index, size_t offset,
       size_t request_bytes)
      : lane_(std::move(lane)),
        index_(index),
        offset_(offset),
        request_bytes_(request_bytes) {}

  Slot& slot() const { return lane_->slot(index_); }

  std::shared_ptr<Lane> lane_;  // null: moved from
  uint32_t index_;
  size_t offset_;
  size_t request_bytes_;
};

}  // namespace pando::lane

#endif  // PANDO_CLIENTS_LANE_LANE_H_
