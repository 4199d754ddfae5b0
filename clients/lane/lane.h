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
// through shared memory. It knows bytes and not messages, and needs nothing but
// the standard library, so that every client can be built on it.
//
//   std::optional<Call> call =
//       lane->NewCall(Method::kInsert, request.size(), answer_bytes);
//   if (!call) { ... no room: make the call over gRPC ... }
//   std::memcpy(call->request().data(), request.data(), request.size());
//   call->Submit();
//   if (call->Await(deadline) == Call::Outcome::kAnswered) {
//     Parse(call->code(), call->answer());  // valid as long as the call
//     if (!call->HasIntactAnswer()) { ... no answer: ask for it over gRPC ... }
//   }
//
// Shared by the client and its calls. Thread-safe. It stays mapped until the
// last call is destroyed, even if pandod has ended.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  using Clock = std::chrono::steady_clock;

  // Maps a lane. Returns null, with the reason in `error`, if this is no lane
  // of a version that this library knows.
  static std::shared_ptr<Lane> Map(const UniqueFd& memory, UniqueFd doorbell,
                                   std::string& error);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Makes a call with room for a request of `request_bytes` bytes and an answer
  // of at most `answer_bytes` bytes. Returns none if there is no room at
  // present, the lane is closed, or this process is a fork of the one that
  // opened it; then the call must go over gRPC.
  std::optional<Call> NewCall(Method method, size_t request_bytes,
                              size_t answer_bytes);

  // Publishes calls in this order, with one doorbell for all of them. REQUIRES:
  // their requests are written.
  void Submit(std::span<Call* const> calls);

  // Ends every unanswered call with kClosed, and lets no new calls begin. Must
  // be called when pandod is gone. Idempotent.
  void Close();
  bool is_closed() const {
    return header().closed.load(std::memory_order_acquire) != 0;
  }

  // These wait for any of several calls. Call WakeLane on each of the calls;
  // from then on answers() counts their answers. AwaitAnswers sleeps until
  // answers() differs from `seen`, at most for `limit`; it may return earlier.
  uint32_t answers() const {
    return header().answers.load(std::memory_order_acquire);
  }
  void AwaitAnswers(uint32_t seen, std::chrono::nanoseconds limit) const;

 private:
  friend class Call;

  Lane(std::byte* base, size_t bytes, UniqueFd doorbell);

  // Returns whether this process is a fork of the one that opened the lane;
  // then it must not use the lane.
  bool is_inherited() const;
  Header& header() const { return HeaderAt(base_); }
  Slot& slot(uint32_t index) const { return SlotAt(base_, index); }
  bool IsSubmitted(uint32_t index) const {
    return slot(index).state.load(std::memory_order_acquire) ==
           static_cast<uint32_t>(SlotState::kSubmitted);
  }
  // Frees the slot of a call. If pandod has not answered the call yet, the slot
  // is abandoned: ReleaseAbandoned frees it after the answer.
  void Release(uint32_t index, size_t offset);
  void ReleaseAbandoned();
  void Free(uint32_t index, size_t offset);

  struct Place {
    bool is_used = false;
    bool is_abandoned = false;  // its call is destroyed, but not answered
    size_t offset = 0;
  };

  std::byte* const base_;
  const size_t bytes_;
  const UniqueFd doorbell_;
  const uint32_t slots_;
  const uint32_t forks_;
  std::mutex mutex_;  // guards what follows, and the words that publish calls
  Arena arena_;
  Place places_[kSlots];
  uint32_t abandoned_ = 0;
};

// One call on a lane. It owns a slot and a range of the arena, which its
// destructor gives back; so it must live until its answer was read. Move-only;
// thread-compatible.
class Call {
 public:
  enum class Outcome {
    kAnswered,
    // The call was carried out, but its answer needs more room than it was
    // given.
    kTooLarge,
    kTimedOut,
    // There will be no answer, but pandod may have carried the call out.
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

  // Where the caller writes the request, before Submit.
  std::span<std::byte> request() const {
    return {ArenaAt(lane_->base_) + offset_, request_bytes_};
  }
  // The lane that this call is on.
  Lane& lane() const { return *lane_; }
  void Submit() {
    Call* self = this;
    lane_->Submit({&self, 1});
  }

  // Waits until the call has an outcome, at the latest until `deadline`. May be
  // called again after kTimedOut.
  Outcome Await(Lane::Clock::time_point deadline);
  // Returns the outcome without waiting, or none if there is none yet.
  std::optional<Outcome> Poll() const;
  // Makes the answer count for Lane::AwaitAnswers. Returns false if the call
  // has an outcome already; then its answer may not be counted.
  bool WakeLane();

  // After kAnswered, these are the google.rpc.Code and the serialized response,
  // or the serialized google.rpc.Status if the code is an error. Valid as long
  // as the call.
  uint32_t code() const;
  std::span<const std::byte> answer() const;
  // Must be called after the answer was read. Returns whether the bytes that
  // were read are the answer. pandod takes back the memory of a lane some
  // seconds after it has closed the lane; a caller that is slower than that has
  // read zeros, and has no answer.
  bool HasIntactAnswer() const;

 private:
  friend class Lane;

  Call(std::shared_ptr<Lane> lane, uint32_t index, size_t offset,
       size_t request_bytes)
      : lane_(std::move(lane)),
        index_(index),
        offset_(offset),
        request_bytes_(request_bytes) {}

  Slot& slot() const { return lane_->slot(index_); }

  std::shared_ptr<Lane> lane_;  // null once this was moved from
  uint32_t index_;
  size_t offset_;
  size_t request_bytes_;
};

}  // namespace pando::lane

#endif  // PANDO_CLIENTS_LANE_LANE_H_
