// Blocks: pieces of memory that engines keep in the block memory, named by a
// kind and a key.
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

// The place of a block: the block begins at byte place * kPlaceBytes of the
// memory. The values in namespace `place` are no places; they say why there is
// none.
using Place = uint32_t;
inline constexpr uint64_t kPlaceBytes = 4096;

namespace place {
// The block is not there.
inline constexpr Place kMissing = 0xffffffff;
// Another session is writing the block now, or it is being loaded from a tier.
inline constexpr Place kPending = 0xfffffffe;
// The block is there already. Reserve answers so for a key for which it
// reserves nothing. Acquire with `all` answers so when it locks nothing because
// other blocks are missing.
inline constexpr Place kReady = 0xfffffffd;
// There is no room for the block.
inline constexpr Place kFull = 0xfffffffc;
// The shape of the keys did not require a look at this key.
inline constexpr Place kNotLookedAt = 0xfffffffb;
}  // namespace place

inline bool IsPlace(Place value) { return value < place::kNotLookedAt; }

// Says which keys of a BlockKeys are looked at.
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
  // The key before the first one; empty if the first one begins a prompt.
  std::string_view before = {};
  // Only LookUp and Acquire use it.
  Shape shape = Shape::kEach;
  // With Shape::kWindow, the number of keys in the window.
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
  uint32_t key_bytes = 0;    // the length of each key, from 16 to 64
  uint64_t shard_bytes = 0;  // the size of a block in one shard
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
  // Names the kind in BlockKeys. It is valid in this run of pandod.
  uint32_t number = 0;
  uint32_t generation = 0;
  // Bytes from one shard of a block to the next.
  uint64_t shard_stride = 0;
  KindSpec spec = {};
};

// The block memory, mapped into this process.
//
// Owned by the caller; move-only; the destructor unmaps it. It may outlive the
// client. When a session is lost, pandod gives its locked and reserved blocks
// to others only once no process has memory mapped that was attached for that
// session. Write only to places that your session has reserved, and read only
// blocks that it has locked.
class BlockMemory {
 public:
  // The epoch that the places of this memory belong to.
  uint64_t epoch() const { return epoch_; }
  std::span<std::byte> bytes() const { return bytes_; }
  // Returns `size` bytes of a block, from the beginning of its first shard on.
  // REQUIRES: IsPlace(place).
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
  // Lock either the blocks of all keys that are looked at, or none.
  bool all = false;
  // Begin to load the blocks that the shapes of the keys need from the disk
  // tier. Their answer is place::kPending until they are loaded, and this call
  // does not wait for them. A later call finds them.
  bool load = false;
};

struct LookUpOptions {
  // See AcquireOptions.
  bool load = false;
  // Look at the memory alone: the blocks do not count as used, and the keys are
  // in no metric. Not together with `load`.
  bool peek = false;
};

// The calls of a Client that concern blocks. Made by Client::blocks; the Client
// must outlive it. Cheap to copy. Thread-safe.
//
// The caller names its locks and reservations by numbers from 1 on that its
// session has not used before. If a call that takes a lock or a reservation
// fails, nothing is held, or what is held is given back in the background; the
// number must not be used again. A call takes at most 16,384 keys.
class BlockClient {
 public:
  // Maps the block memory.
  absl::StatusOr<BlockMemory> AttachMemory() const;

  // Opens kinds, at most 256, and makes those that are new: all or none. Fails
  // with LAYOUT_MISMATCH if a kind exists with other sizes. A new session must
  // open its kinds again.
  absl::StatusOr<std::vector<Kind>> OpenKinds(
      std::span<const KindSpec> specs) const;
  // Opens the kinds of these names, at most 256, and returns them in order.
  // Returns none for a kind that no session has opened yet.
  absl::StatusOr<std::vector<std::optional<Kind>>> FindKinds(
      std::span<const KindName> names) const;
  // Replaces kinds by new, empty generations, or by newer ones if these exist
  // already. Returns them; they are open from now on. Other sessions keep using
  // the old ones.
  absl::StatusOr<std::vector<Kind>> ResetKinds(
      std::span<const uint32_t> numbers) const;

  // Returns for each key, in order, the place of its block or why there is
  // none. Counts as a use of the blocks, but locks nothing.
  absl::StatusOr<std::vector<Place>> LookUp(
      std::span<const BlockKeys> keys, const LookUpOptions& options = {}) const;
  // Locks the blocks that are ready. Returns the same as LookUp.
  absl::StatusOr<std::vector<Place>> Acquire(
      uint64_t lock, std::span<const BlockKeys> keys,
      const AcquireOptions& options = {}) const;
  // Reserves a place for each key that is missing; with `all`, for all of them
  // or for none. Returns the places that the caller may now write, and
  // place::kReady, kPending or kFull for the other keys.
  absl::StatusOr<std::vector<Place>> Reserve(uint64_t reservation,
                                             std::span<const BlockKeys> keys,
                                             bool all = false) const;

  // Publishes written blocks of a reservation, all at once. `indices` are the
  // positions of their keys in the call of Reserve, from 0 on; empty means all.
  // Skips positions that the reservation does not have (any more). If pandod
  // does not answer, this fails, and the client publishes the blocks in the
  // background.
  absl::Status Publish(uint64_t reservation,
                       std::span<const uint32_t> indices = {}) const;
  // Gives reserved places back. `indices` and failures are as for Publish.
  absl::Status Discard(uint64_t reservation,
                       std::span<const uint32_t> indices = {}) const;
  // Releases locks; skips those that the session does not have (any more). If
  // pandod does not answer, this fails, and the client releases them in the
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
