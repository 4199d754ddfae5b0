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

// The block memory, for engines that compute elsewhere: it knows where each
// block, named by (kind, key), lies, which sessions read or write it, and what
// is evicted when room is needed. It handles places; engines move the bytes.
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
// times, so that no hold of the mutex is long. Between two holds other calls
// may change blocks that the call has only looked at, but not those that it has
// locked or reserved.
//
// An answer has a place for each key, in the order of the keys. A call that
// fails leaves the caller's locks and reservations as they were. Every call is
// idempotent: the client chooses the ids, so a repeated call gets the answer of
// the first. Errors: SESSION_LOST, KIND_UNKNOWN for a kind that the session has
// not opened, INVALID_FIELD, SESSION_LIMIT, DRAINING, LAYOUT_MISMATCH;
// NO_BLOCK_MEMORY for every call when the memory has 0 bytes.
//
// A session holds its locks and reservations until it gives them back or ends.
// If it is lost while its processes may still read and write the memory, they
// go to quarantine, as its reserved pages do.
class BlockCache {
 public:
  // `cache` outlives this; its options contain the BlockOptions.
  explicit BlockCache(PrefixCache* cache) : cache_(cache) {}

  // Opens the newest generation of each kind for the session, and makes the
  // kinds that do not exist: all or none. LAYOUT_MISMATCH if a kind exists with
  // other sizes. A different label is ignored.
  absl::StatusOr<std::vector<BlockKind>> OpenKinds(
      SessionId session, std::span<const KindSpec> specs);
  // Opens the newest generation of each named kind that exists; for the others
  // the answer has number 0.
  absl::StatusOr<std::vector<BlockKind>> FindKinds(
      SessionId session, std::span<const KindName> names);
  // For each given generation that is still the newest of its kind, makes a
  // new, empty one. Returns the newest generations; the session has them open
  // from then on, in place of those that it named. Other sessions keep the old
  // generations open. A generation that is not the newest loses its blocks once
  // no session has it open.
  absl::StatusOr<std::vector<BlockKind>> ResetKinds(
      SessionId session, std::span<const KindNumber> kinds);

  // Returns where the blocks are. A block that is found counts as used, unless
  // the call `peeks`; nothing is locked.
  absl::StatusOr<std::vector<BlockPlace>> Lookup(
      SessionId session, std::span<const BlockKeys> keys, bool peeks = false);
  // The same as Lookup, and locks each block for which it answers a place. A
  // lock without places is not kept. If the session already has a lock of this
  // id, the answer is that of the call that took it.
  absl::StatusOr<std::vector<BlockPlace>> Acquire(
      const AcquireBlocksRequest& request);
  // Releases locks. Returns how many of them the session did not have.
  absl::StatusOr<uint32_t> Release(SessionId session,
                                   std::span<const BlockLockId> locks);

  // Answers each key with a place to write to, or with kReadyBlock,
  // kPendingBlock or kNoRoomForBlock. With `all`, if there is no room for one
  // of the keys, nothing is reserved, and the keys that would have had places
  // get kMissingBlock. A reservation without places is not kept. If the session
  // already has a reservation of this id, it gets the first answer again, but
  // with kReadyBlock for blocks published since and kMissingBlock for blocks
  // discarded since.
  absl::StatusOr<std::vector<BlockPlace>> Reserve(
      const ReserveBlocksRequest& request);
  // Publishes reserved blocks: others find them from now on, all in one step.
  // The caller's writes to them must be complete. `indices` are positions of
  // keys in the Reserve call; an empty span means all. Returns how many of them
  // name no block that was still to be written; without indices, 1 if the
  // session does not have the reservation. A reservation ends with its last
  // block. If `published` is not null, it receives the keys of the blocks that
  // were still to be written, even where another block of the same key was
  // published before.
  absl::StatusOr<uint32_t> Publish(
      SessionId session, ReservationId reservation,
      std::span<const uint32_t> indices,
      std::vector<KeysOfKind>* published = nullptr);
  // Gives back reserved blocks that are not published: some blocks of one
  // reservation (all if there are no indices), or several whole reservations.
  // The caller must not write to them any more. Returns how many of the blocks
  // or reservations the session did not have.
  absl::StatusOr<uint32_t> Discard(SessionId session, ReservationId reservation,
                                   std::span<const uint32_t> indices);
  absl::StatusOr<uint32_t> Discard(SessionId session,
                                   std::span<const ReservationId> reservations);

  // Statistics for operators.
  BlockStats Stats();
  // Says why a key is found or not. KIND_UNKNOWN, or INVALID_FIELD if the key
  // has the wrong length.
  absl::StatusOr<BlockExplanation> Explain(KindNumber kind,
                                           std::string_view key);

 private:
  PrefixCache* const cache_;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CACHE_H_
