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

// Names a block, the same on every machine.
struct BlockKey {
  uint64_t ns_digest = 0;  // of the page's namespace
  PageHash hash = {};
  // How many pages of the prompt end with this one.
  uint32_t ordinal = 0;
};

// Blocks that many machines share: the seam of RemoteTier. It knows no pages,
// and need not be honest: RemoteTier verifies what it gets.
//
// All calls take many blocks, and may hang; RemoteTier makes them on threads
// of which it gives up the wait. A call whose deadline (of MonotonicNow) passes
// while it works leaves the rest undone. Owned by RemoteBlocks; thread-safe.
class RemoteStore {
 public:
  // A value on its way, and how it went. All values have the same length.
  struct Transfer {
    BlockKey key;
    std::span<std::byte> value;
    absl::Status status;
  };

  // The blocks of a run that are there.
  struct Presence {
    size_t blocks = 0;        // at its front
    bool lacks_next = false;  // else it is not known whether the next one is
  };

  virtual ~RemoteStore() = default;

  // As far as this was found out in time; an error if nothing was.
  virtual absl::StatusOr<Presence> CountPresent(std::span<const BlockKey> keys,
                                                absl::Time deadline) = 0;
  // NotFound: it is not there. DataLoss: its value has another length.
  virtual void Get(std::span<Transfer> blocks, absl::Time deadline) = 0;
  // A block is there as a whole, or not at all. `used` is of the system's
  // clock; of two with the same, the one with the higher ordinal must not stay
  // for longer.
  virtual void Put(std::span<Transfer> blocks, absl::Time used,
                   absl::Time deadline) = 0;
  // Says that they are in use, and which of them are there.
  virtual absl::StatusOr<std::vector<bool>> Touch(
      std::span<const BlockKey> keys, absl::Time used, absl::Time deadline) = 0;
  virtual absl::Status Erase(const BlockKey& key) = 0;
  // All of a namespace; none: of all. May take long.
  virtual absl::Status EraseAll(std::optional<uint64_t> ns_digest) = 0;
  // Frees some of the room that what EraseAll has erased still takes, be it in
  // an earlier process. Whether there may be more of it. Called by one thread.
  virtual bool FreeSome() { return false; }
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_REMOTE_STORE_H_
