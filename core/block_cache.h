#ifndef PANDO_CORE_BLOCK_CACHE_H_
#define PANDO_CORE_BLOCK_CACHE_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/prefix_cache.h"
#include "core/requests/block_requests.h"

namespace pando {

// The block memory, for engines that compute elsewhere: it knows which blocks,
// named by (kind, key), lie where, who reads or writes them, and what is
// evicted when room is needed. It deals in places; engines move the bytes.
//
//   auto kinds = blocks.OpenKinds(session, specs);
//   auto found = blocks.Acquire({.session = session, .lock = BlockLockId(1),
//                                .keys = keys});       // ... copy out of them
//   blocks.Release(session, {BlockLockId(1)});
//   auto room = blocks.Reserve({.session = session,
//                               .reservation = ReservationId(1), .keys =
//                               keys});
//   // ... copy into those places of *room for which IsPlace holds
//   blocks.Publish(session, ReservationId(1), {});
//
// Owned by Server, beside the PrefixCache whose mutex, sessions, limits, drain
// and time it shares. Thread-safe. Calls with many keys take the mutex several
// times, so that no hold is long; between two holds others may change what was
// looked at, but not what the call has locked or reserved by then.
//
// Answers have a place for each key, in the order of the keys. A call that
// fails changes nothing of what the caller has. Every call is idempotent: the
// client chooses the ids, so that one which is sent again gets the answer of
// the first. Errors: SESSION_LOST, KIND_UNKNOWN for a kind that the session has
// not open, INVALID_FIELD, SESSION_LIMIT, DRAINING, LAYOUT_MISMATCH;
// NO_BLOCK_MEMORY for every call when the memory has 0 bytes.
//
// A session holds its locks and reservations until it gives them back or ends.
// When it is lost they are in quarantine, as its reserved pages are: its
// processes may still read and write.
class BlockCache {
 public:
  // `cache` outlives this; BlockOptions are among its options.
  explicit BlockCache(PrefixCache* cache) : cache_(cache) {}

  // Opens the newest generation of each kind for the session, and makes those
  // that are not there: all or none. LAYOUT_MISMATCH if one is there with other
  // sizes. A label that differs is ignored.
  absl::StatusOr<std::vector<BlockKind>> OpenKinds(
      SessionId session, std::span<const KindSpec> specs);
  // Opens the newest generation of those that are there.
  absl::StatusOr<std::vector<BlockKind>> FindKinds(
      SessionId session, std::span<const KindName> names);
  // Makes a new, empty generation of each kind that is the newest one, and
  // returns the newest ones, which the session then has open in place of those
  // that it named. Other sessions keep those; a generation that is not the
  // newest loses its blocks once no session has it open.
  absl::StatusOr<std::vector<BlockKind>> ResetKinds(
      SessionId session, std::span<const KindNumber> kinds);

  // Where blocks are. What is found counts as used; nothing is locked.
  absl::StatusOr<std::vector<BlockPlace>> Lookup(
      SessionId session, std::span<const BlockKeys> keys);
  // The same, and locks what it answers places for. A lock that locks nothing
  // is not kept. A lock that the session has gets its first answer.
  absl::StatusOr<std::vector<BlockPlace>> Acquire(
      const AcquireBlocksRequest& request);
  // Releases locks. Returns how many of them the session did not have.
  absl::StatusOr<uint32_t> Release(SessionId session,
                                   std::span<const BlockLockId> locks);

  // For each key a place to write to, or kReadyBlock, kPendingBlock,
  // kNoRoomForBlock. With `all`, and without room for one of them, nothing is
  // reserved and keys that would have had places are kMissingBlock. A
  // reservation without places is not kept. One that the session has gets its
  // first answer, with kReadyBlock for what is published by now and
  // kMissingBlock for what was discarded.
  absl::StatusOr<std::vector<BlockPlace>> Reserve(
      const ReserveBlocksRequest& request);
  // From now on others find the blocks, all in one step. The caller's writes to
  // them must be complete. `indices` are those of the keys in the call that
  // reserved; none: all. Returns how many of them were not to be written (any
  // more). A reservation ends with its last block. `published`, unless it is
  // null, is given the keys of those that were, also if another block of the
  // key was published before.
  absl::StatusOr<uint32_t> Publish(
      SessionId session, ReservationId reservation,
      std::span<const uint32_t> indices,
      std::vector<KeysOfKind>* published = nullptr);
  // Gives back what is not published: some blocks of one reservation (no
  // indices: all), or several reservations. The caller writes to them no more.
  absl::StatusOr<uint32_t> Discard(SessionId session, ReservationId reservation,
                                   std::span<const uint32_t> indices);
  absl::StatusOr<uint32_t> Discard(SessionId session,
                                   std::span<const ReservationId> reservations);

  // For operators.
  BlockStats Stats();
  // KIND_UNKNOWN, or INVALID_FIELD if the key has another length.
  absl::StatusOr<BlockExplanation> Explain(KindNumber kind,
                                           std::string_view key);

 private:
  PrefixCache* const cache_;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CACHE_H_
