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
// last call is destroyed, whatever becomes of pandod.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  using Clock = std::chrono::steady_clock;

  // Null, with the reason in `error`, if this is no lane of a version that this
  // library knows.
  static std::shared_ptr<Lane> Map(const UniqueFd& memory, UniqueFd doorbell,
                                   std::string& error);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  // Makes a call with room for a request of `request_bytes` and an answer of at
  // most `answer_bytes`. None: there is no room at present, the lane is closed,
  // or the process was forked since; the call must go over gRPC.
  std::optional<Call> NewCall(Method method, size_t request_bytes,
                              size_t answer_bytes);

  // Publishes calls in this order, with one doorbell for all of them. REQUIRES:
  // their requests are written.
  void Submit(std::span<Call* const> calls);

  // Ends every call without an answer with kClosed; there are no new ones. To
  // be called when pandod is gone. Idempotent.
  void Close();
  bool is_closed() const {
    return header().closed.load(std::memory_order_acquire) != 0;
  }

  // To wait for any of several calls: call WakeLane on each of them; then
  // answers() counts their answers, and AwaitAnswers sleeps until that is more
  // than `seen`, at most for `limit`.
  uint32_t answers() const {
    return header().answers.load(std::memory_order_acquire);
  }
  void AwaitAnswers(uint32_t seen, std::chrono::nanoseconds limit) const;

 private:
  friend class Call;

  Lane(std::byte* base, size_t bytes, UniqueFd doorbell);

  // Whether this process is a child of the one that opened the lane, which it
  // must leave alone.
  bool is_inherited() const;
  Header& header() const { return HeaderAt(base_); }
  Slot& slot(uint32_t index) const { return SlotAt(base_, index); }
  bool IsSubmitted(uint32_t index) const {
    return slot(index).state.load(std::memory_order_acquire) ==
           static_cast<uint32_t>(SlotState::kSubmitted);
  }
  // Frees the slot of a call. If pandod has still to answer it, the slot is
  // abandoned: ReleaseAbandoned frees it after the answer.
  void Release(uint32_t index, size_t offset);
  void ReleaseAbandoned();
  void Free(uint32_t index, size_t offset);

  struct Place {
    bool is_used = false;
    bool is_abandoned = false;  // its caller is gone, its answer is pending
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
    // It was carried out, but the answer needs more room than was given.
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
  // The outcome, without waiting; none: there is no answer yet.
  std::optional<Outcome> Poll() const;
  // Makes the answer count for Lane::AwaitAnswers. Returns false when the
  // answer is there already, and does not count.
  bool WakeLane();

  // After kAnswered: the google.rpc.Code, and the serialized response, or
  // google.rpc.Status if the code is an error. Valid as long as the call.
  uint32_t code() const;
  std::span<const std::byte> answer() const;
  // Whether what was read of the answer until now is the answer. pandod takes
  // back the memory of a lane some seconds after it has closed it: who is
  // slower than that has read zeros, and has no answer.
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

  std::shared_ptr<Lane> lane_;  // null once moved from
  uint32_t index_;
  size_t offset_;
  size_t request_bytes_;
};

}  // namespace pando::lane

#endif  // PANDO_CLIENTS_LANE_LANE_H_
