#ifndef PANDO_TIERS_SHARED_REMOTE_STORE_H_
#define PANDO_TIERS_SHARED_REMOTE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/nodes/page_hash.h"

namespace pando {

// Names a block, the same on every machine: a page of a prompt, or a block of
// the block memory.
struct BlockKey {
  uint64_t ns_digest = 0;  // of the page's namespace; else names the kind
  PageHash hash = {};
  // The number of the block in its prompt, or among those that are stored with
  // it: 1 for the first. Only Put and Touch use it; callers of other methods
  // need not set it.
  uint32_t ordinal = 0;
};

// A store of blocks that many machines share: the interface between the tiers
// that use it, RemoteTier and SharedBlockTier, and its backends. It knows
// neither pages nor kinds, and need not be honest: the tiers verify what they
// get.
//
// Any call may hang; the tiers make them on threads of their own, and give up
// the wait after a timeout. A call whose deadline (of MonotonicNow) passes
// leaves the rest of its blocks undone. Owned by RemoteBlocks or SharedBlocks;
// thread-safe.
class RemoteStore {
 public:
  // A block to get or to put, and how that went.
  struct Transfer {
    BlockKey key;
    std::span<std::byte> value;
    absl::Status status;
  };

  // Says which blocks of a run the store has.
  struct Presence {
    size_t blocks = 0;        // so many at the front of the run
    bool lacks_next = false;  // the next one is missing; if false: not known
  };

  virtual ~RemoteStore() = default;

  // Returns how many blocks at the front the store has, as far as it found out
  // before the deadline; there may be none. Returns an error if the store
  // failed at the first block. If it failed later, it may return the blocks
  // before the failure.
  virtual absl::StatusOr<Presence> CountPresent(std::span<const BlockKey> keys,
                                                absl::Time deadline) = 0;
  // Fills the values, and sets the status of each block: NOT_FOUND if the store
  // does not have it, DATA_LOSS if its value has another length.
  virtual void Get(std::span<Transfer> blocks, absl::Time deadline) = 0;
  // Stores the values, and sets the status of each block. A block is stored as
  // a whole or not at all. `used` is the time of the last use, by the system's
  // clock. Of two blocks with the same `used`, the store must not keep the one
  // with the higher ordinal longer.
  virtual void Put(std::span<Transfer> blocks, absl::Time used,
                   absl::Time deadline) = 0;
  // Sets the time of the last use of blocks. Returns, for each key, whether the
  // store has its block; false also for keys that the deadline left undone.
  virtual absl::StatusOr<std::vector<bool>> Touch(
      std::span<const BlockKey> keys, absl::Time used, absl::Time deadline) = 0;
  virtual absl::Status Erase(const BlockKey& key) = 0;
  // Erases all blocks of a namespace, or of all namespaces with none. May take
  // long.
  virtual absl::Status EraseAll(std::optional<uint64_t> ns_digest) = 0;
  // Frees some of the room that erased blocks still take, also those that
  // earlier processes have erased. Returns whether there may be more. Called by
  // one thread.
  virtual bool FreeSome() { return false; }
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_STORE_H_
