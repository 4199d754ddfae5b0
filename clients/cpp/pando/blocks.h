// Blocks: what engines keep in the block memory, named by kind and key.
#ifndef PANDO_BLOCKS_H_
#define PANDO_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

class Connection;

// Where a block lies: it begins at byte place * kPlaceBytes of the memory. The
// values of namespace `place` are no places.
using Place = uint32_t;
inline constexpr uint64_t kPlaceBytes = 4096;

namespace place {
// The block is not there.
inline constexpr Place kMissing = 0xffffffff;
// Another session is writing the block now, or it is being loaded from a tier.
inline constexpr Place kPending = 0xfffffffe;
// The block is there already, and nothing is reserved; or, of an acquire with
// `all`, it is there, and nothing is locked because others are not.
inline constexpr Place kReady = 0xfffffffd;
// There is no room for the block.
inline constexpr Place kFull = 0xfffffffc;
// The key was not looked at, because of the shape of the keys.
inline constexpr Place kNotLookedAt = 0xfffffffb;
}  // namespace place

inline bool IsPlace(Place value) { return value < place::kNotLookedAt; }

// Which keys of a BlockKeys are looked at.
enum class Shape {
  kEach,        // each by itself
  kPrefix,      // from the first on, up to the first that is not ready
  kWindow,      // from the end: the last `window` neighbours that are ready
  kCheckpoint,  // from the end: the last key that is ready
};

// Keys of one kind, in the order of the prompt.
struct BlockKeys {
  uint32_t kind = 0;  // Kind::number
  // The keys, one after the other.
  std::string_view keys = {};
  // The key before the first one; empty: the first one begins a prompt.
  std::string_view before = {};
  // For LookUp and Acquire.
  Shape shape = Shape::kEach;
  // With Shape::kWindow: how many keys.
  uint32_t window = 0;
};

// Describes what one layout of an engine stores under its keys.
struct KindSpec {
  // A digest of all that determines the bytes of a block: architecture, weights
  // and their version, quantization, data type, block size, rank, format and
  // version of the engine. From 1 to 256 bytes.
  std::string identity = {};
  // For operators, for example "vllm llama group 0".
  std::string label = {};
  uint32_t key_bytes = 0;    // of each key, from 16 to 64
  uint64_t shard_bytes = 0;  // of a block in one shard
  uint32_t shards = 1;
  Namespace ns = {};
};

// The name of a kind.
struct KindName {
  std::string identity = {};
  Namespace ns = {};
};

// A kind that the session has open.
struct Kind {
  // Names the kind in BlockKeys, in this boot of pandod.
  uint32_t number = 0;
  uint32_t generation = 0;
  // Bytes from one shard of a block to the next.
  uint64_t shard_stride = 0;
  KindSpec spec = {};
};

// The block memory, mapped into this process.
//
// Owned by the caller; move-only; the destructor unmaps it. It may outlive the
// client. When a session is lost, pandod gives what it had locked or reserved
// to others only once no process has the memory mapped that was attached for
// it. Write only where your session has reserved, and read only what it has
// locked.
class BlockMemory {
 public:
  // The boot of pandod that the places of this memory belong to.
  uint64_t epoch() const { return epoch_; }
  std::span<std::byte> bytes() const { return bytes_; }
  // The bytes of a block from the first of its first shard on.
  std::span<std::byte> At(Place place, uint64_t size) const {
    return bytes_.subspan(place * kPlaceBytes, size);
  }

 private:
  friend class BlockClient;

  BlockMemory(uint64_t epoch, std::span<std::byte> bytes,
              std::shared_ptr<const void> owner)
      : epoch_(epoch), bytes_(bytes), owner_(std::move(owner)) {}

  uint64_t epoch_;
  std::span<std::byte> bytes_;
  // Destroying it unmaps the memory.
  std::shared_ptr<const void> owner_;
};

struct AcquireOptions {
  // Lock every key that is looked at, or none.
  bool all = false;
  // Begin to load what the shapes of the keys need from the disk tier: it is
  // place::kPending until then, and nothing waits for it. What was loaded,
  // another lock finds.
  bool load = false;
};

// The calls of a Client that concern blocks. Made by Client::blocks; the Client
// outlives it. Cheap to copy. Thread-safe.
//
// The caller names its locks and reservations, by numbers from 1 that its
// session has not used before. When a call that takes one fails, nothing of it
// is left, or soon nothing will be; its name is not to be used again. A call
// takes at most 16,384 keys.
class BlockClient {
 public:
  // Maps the block memory.
  absl::StatusOr<BlockMemory> AttachMemory() const;

  // Finds kinds, or makes those that are new: all or none. At most 256. Fails
  // with LAYOUT_MISMATCH where a kind has other sizes. A new session opens its
  // kinds anew.
  absl::StatusOr<std::vector<Kind>> OpenKinds(
      std::span<const KindSpec> specs) const;
  // The kinds of these names, in order, open from now on; none for one that was
  // not opened yet. At most 256.
  absl::StatusOr<std::vector<std::optional<Kind>>> FindKinds(
      std::span<const KindName> names) const;
  // Replaces kinds by new, empty generations, or by newer ones that there are
  // already; open from now on. Other sessions keep the old ones.
  absl::StatusOr<std::vector<Kind>> ResetKinds(
      std::span<const uint32_t> numbers) const;

  // The place of each key, in order, or why it has none. Counts as a use, and
  // locks nothing. `load` is as in AcquireOptions.
  absl::StatusOr<std::vector<Place>> LookUp(std::span<const BlockKeys> keys,
                                            bool load = false) const;
  // Locks the blocks that are ready. Answers as LookUp.
  absl::StatusOr<std::vector<Place>> Acquire(
      uint64_t lock, std::span<const BlockKeys> keys,
      const AcquireOptions& options = {}) const;
  // Reserves a place for each key that is missing; with `all`, for every one or
  // for none. Answers the places that the caller may now write, and
  // place::kReady, kPending or kFull for the other keys.
  absl::StatusOr<std::vector<Place>> Reserve(uint64_t reservation,
                                             std::span<const BlockKeys> keys,
                                             bool all = false) const;

  // Publishes what is complete of a reservation, all at once: these keys of it,
  // counted from 0 in the order of its call, or all if none is named. Skips
  // what the reservation does not have (any more). Where pandod does not
  // answer, this fails, and it is published in the background.
  absl::Status Publish(uint64_t reservation,
                       std::span<const uint32_t> indices = {}) const;
  // Gives reserved places back; as Publish.
  absl::Status Discard(uint64_t reservation,
                       std::span<const uint32_t> indices = {}) const;
  // Releases locks; skips those that the session does not have (any more).
  // Where pandod does not answer, this fails, and they are released in the
  // background.
  absl::Status Release(std::span<const uint64_t> locks) const;

 private:
  friend class Client;

  explicit BlockClient(Connection* connection) : connection_(connection) {}

  Connection* connection_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_BLOCKS_H_
