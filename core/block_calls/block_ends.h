#ifndef PANDO_CORE_BLOCK_CALLS_BLOCK_ENDS_H_
#define PANDO_CORE_BLOCK_CALLS_BLOCK_ENDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/block_calls/block_call.h"
#include "core/parts/stepped_work.h"
#include "core/requests/block_requests.h"

namespace pando {

// Implements BlockCache::Publish, and BlockCache::Discard of some blocks.
// Publishing is one step, so that others find all published blocks or none;
// steps before it prepare the blocks. Discarding takes several steps.
class BlockCompletion : public SteppedWork {
 public:
  enum class Outcome { kPublished, kDiscarded };

  BlockCompletion(SessionId session, ReservationId reservation,
                  std::span<const uint32_t> indices, Outcome outcome,
                  bool notes_keys)
      : session_id_(session),
        reservation_(reservation),
        indices_(indices),
        outcome_(outcome),
        notes_keys_(notes_keys) {}

  bool Step(CacheParts& parts) override;
  // How many of the named blocks were not (or no longer) to be written.
  // REQUIRES: Step returned true.
  const absl::StatusOr<uint32_t>& result() const { return result_; }
  // The keys of the blocks by kind, in the order of the call, if `notes_keys`
  // was set.
  std::vector<KeysOfKind> TakeKeys() { return std::move(keys_); }

 private:
  // Returns whether that was the last step.
  absl::StatusOr<bool> TryStep(CacheParts& parts);
  absl::Status Check(const BlockHold& hold) const;
  // Ends the call because the reservation has ended, before the call or between
  // two steps.
  void EndWithoutHold();
  // How many blocks are to be completed, and the n-th one's place in the
  // reservation.
  size_t CountOf(const BlockHold& hold) const;
  size_t IndexOf(const BlockHold& hold, size_t n) const;
  bool IsPrepared(size_t count) const;
  // Reattaches the next kStepKeys blocks, so that the step that publishes all
  // is short, and notes their keys.
  void PrepareMore(BlockTable& blocks, const BlockHold& hold);
  void NoteKey(const BlockMemory& memory, BlockNumber block);
  // Publishes or discards at most `most` more blocks.
  void Complete(CacheParts& parts, BlockHold& hold, size_t most);

  const SessionId session_id_;
  const ReservationId reservation_;
  const std::span<const uint32_t> indices_;
  const Outcome outcome_;
  const bool notes_keys_;
  uint64_t hold_ = 0;  // the reservation's handle, once a step has found it
  size_t prepared_ = 0;
  size_t completed_ = 0;
  std::vector<KeysOfKind> keys_;
  absl::flat_hash_map<KindNumber, size_t> place_in_keys_;
  uint32_t unknown_ = 0;
  absl::StatusOr<uint32_t> result_ = 0;
};

// Implements BlockCache::Release, and BlockCache::Discard of whole
// reservations, in steps. Once it has begun to give a hold back, no call can
// use that hold any more.
class BlockRelease : public SteppedWork {
 public:
  BlockRelease(SessionId session, std::span<const BlockLockId> locks)
      : session_id_(session), locks_(locks) {}
  BlockRelease(SessionId session, std::span<const ReservationId> reservations)
      : session_id_(session), reservations_(reservations) {}

  bool Step(CacheParts& parts) override;
  // How many of the locks or reservations the session did not have. REQUIRES:
  // Step returned true.
  const absl::StatusOr<uint32_t>& result() const { return unknown_; }

 private:
  size_t size() const { return locks_.size() + reservations_.size(); }
  BlockHold::Name name(size_t i) const;

  const SessionId session_id_;
  // One of the two is empty.
  const std::span<const BlockLockId> locks_;
  const std::span<const ReservationId> reservations_;
  size_t next_ = 0;
  absl::StatusOr<uint32_t> unknown_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_BLOCK_ENDS_H_
