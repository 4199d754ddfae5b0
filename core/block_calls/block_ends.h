#ifndef PANDO_CORE_BLOCK_CALLS_BLOCK_ENDS_H_
#define PANDO_CORE_BLOCK_CALLS_BLOCK_ENDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/block_calls/block_call.h"
#include "core/parts/stepped_work.h"
#include "core/requests/block_requests.h"

namespace pando {

// BlockCache::Publish, and BlockCache::Discard of some blocks: in one step, so
// that others find all published blocks or none.
class BlockCompletion : public SteppedWork {
 public:
  enum class Outcome { kPublished, kDiscarded };

  // `completed` is given the keys of the blocks, unless it is null.
  BlockCompletion(SessionId session, ReservationId reservation,
                  std::span<const uint32_t> indices, Outcome outcome,
                  std::vector<KeysOfKind>* completed)
      : session_id_(session),
        reservation_(reservation),
        indices_(indices),
        outcome_(outcome),
        completed_(completed) {}

  bool Step(CacheParts& parts) override;
  // How many blocks were not to be written. REQUIRES: Step returned true.
  const absl::StatusOr<uint32_t>& result() const { return result_; }

 private:
  absl::StatusOr<uint32_t> TryStep(CacheParts& parts) const;
  // Adds the key of a place that is to be written still.
  void NoteKey(const BlockMemory& memory, BlockPlace place) const;

  const SessionId session_id_;
  const ReservationId reservation_;
  const std::span<const uint32_t> indices_;
  const Outcome outcome_;
  std::vector<KeysOfKind>* const completed_;
  absl::StatusOr<uint32_t> result_ = 0;
};

// Gives back whole locks or reservations: BlockCache::Release, and
// BlockCache::Discard. In steps; no call finds what it has begun to give back.
class BlockRelease : public SteppedWork {
 public:
  BlockRelease(SessionId session, std::span<const BlockLockId> locks)
      : session_id_(session), locks_(locks) {}
  BlockRelease(SessionId session, std::span<const ReservationId> reservations)
      : session_id_(session), reservations_(reservations) {}

  bool Step(CacheParts& parts) override;
  // How many of them the session did not have. REQUIRES: Step returned true.
  const absl::StatusOr<uint32_t>& result() const { return unknown_; }

 private:
  size_t size() const { return locks_.size() + reservations_.size(); }
  BlockHold::Name name(size_t i) const;

  const SessionId session_id_;
  // One of them is empty.
  const std::span<const BlockLockId> locks_;
  const std::span<const ReservationId> reservations_;
  size_t next_ = 0;
  absl::StatusOr<uint32_t> unknown_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_BLOCK_ENDS_H_
