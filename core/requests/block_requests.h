#ifndef PANDO_CORE_REQUESTS_BLOCK_REQUESTS_H_
#define PANDO_CORE_REQUESTS_BLOCK_REQUESTS_H_

// The requests and results of BlockCache: plain structs, so that any transport
// can speak to it. A field means what the field of the same name means in
// proto/pando/v1/blocks.proto.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/requests/namespace_key.h"

namespace pando {

// Block memory, in numbers. Memory of 0 bytes: there are no blocks, and each
// call says so.
struct BlockOptions {
  uint64_t memory_bytes = 0;
  // The piece of memory that one kind has at a time, a power of two of at least
  // kPlaceBytes. What is left of the memory behind the last extent is not used.
  // A block must fit into one extent.
  uint64_t extent_bytes = uint64_t{16} << 20;
  // A block that has been written for longer reads as missing, and others may
  // reserve its key.
  absl::Duration write_limit = absl::Seconds(30);
  // Memory for the ledger, which may outlive the process, and the id of the
  // block memory that it tells of; see BlockLedger. Empty: the cache has a
  // ledger of its own.
  std::span<std::byte> ledger = {};
  uint64_t memory_id = 0;
};

inline constexpr uint64_t kPlaceBytes = 4'096;
inline constexpr uint32_t kMinKeyBytes = 16;
inline constexpr uint32_t kMaxKeyBytes = 64;
inline constexpr size_t kMaxIdentityBytes = 256;
inline constexpr size_t kMaxLabelBytes = 256;
inline constexpr uint32_t kMaxKinds = 4'096;
inline constexpr size_t kMaxKindsOfCall = 256;
inline constexpr size_t kMaxKindsOfSession = 256;  // open at a time
// The most blocks of an extent: they leave it in one hold of the cache.
inline constexpr uint64_t kMaxBlocksOfExtent = 16'384;
// The most keys of one call, over all its kinds, and the longest row of them
// that may be looked for.
inline constexpr size_t kMaxBlockKeys = 16'384;
inline constexpr uint32_t kMaxWindow = 2'048;

// In place of a place.
inline constexpr BlockPlace kMissingBlock{0xffffffff};
// A live session writes it.
inline constexpr BlockPlace kPendingBlock{0xfffffffe};
// Reserve: it is there, there is nothing to write.
inline constexpr BlockPlace kReadyBlock{0xfffffffd};
// Reserve: there is no room that could be made.
inline constexpr BlockPlace kNoRoomForBlock{0xfffffffc};
// The shape does not need it, or another key already decided.
inline constexpr BlockPlace kNotLookedAt{0xfffffffb};

inline bool IsPlace(BlockPlace place) { return place < kNotLookedAt; }

// A kind: the blocks that one engine layout stores under keys of one length.
struct KindSpec {
  NamespaceKey ns;
  // 1 to kMaxIdentityBytes bytes: a digest of all that determines the bytes of
  // a block.
  std::string identity;
  std::string label;  // for operators; at most kMaxLabelBytes
  uint32_t key_bytes = 0;
  uint64_t shard_bytes = 0;
  uint32_t shards = 0;

  friend bool operator==(const KindSpec&, const KindSpec&) = default;
};

// A kind that is open. Number 0: FindKinds found none.
struct BlockKind {
  KindNumber number;
  uint32_t generation = 0;  // 1, then one more with each reset
  uint64_t shard_stride =
      0;  // bytes; shard s of a block is at s * shard_stride
  KindSpec spec;
};

// Names all generations of a kind.
struct KindName {
  NamespaceKey ns;
  std::string identity;

  friend bool operator==(const KindName&, const KindName&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const KindName& name) {
    return H::combine(std::move(state), name.ns, name.identity);
  }
};

// Tells which of some keys decide, in Lookup and Acquire; Reserve takes each.
enum class BlockShape {
  // Each key by itself.
  kEach,
  // From the first to the last before one that is not ready.
  kPrefix,
  // The last `window` keys in a row that are ready; if no row is so long, the
  // row that begins with the first key. It is searched from the end.
  kWindow,
  // The last key that is ready: a window of 1.
  kCheckpoint,
};

// Keys of one kind, in prompt order: what comes before the block of a key is
// the block of the key before it, for the first one that of `before`.
struct BlockKeys {
  KindNumber kind;
  std::string_view keys;    // whole keys of the kind, one after the other
  std::string_view before;  // one key, or empty
  BlockShape shape = BlockShape::kEach;
  uint32_t window = 0;  // with kWindow, at least 1
};

// Keys of one kind, one after the other.
struct KeysOfKind {
  KindNumber kind;
  std::string keys;
};

struct AcquireBlocksRequest {
  SessionId session;
  BlockLockId lock;
  std::span<const BlockKeys> keys;
  // Lock nothing unless each of `keys` is found: all keys, or with kWindow and
  // kCheckpoint the row.
  bool all = false;
};

struct ReserveBlocksRequest {
  SessionId session;
  ReservationId reservation;
  std::span<const BlockKeys> keys;
  // Reserve nothing unless there is room for each key that is missing.
  bool all = false;
};

// Why a block was evicted.
enum class BlockEviction {
  kRoom,    // for another block of its kind
  kExtent,  // its extent went to another kind
  kReset,   // its kind ended
};
inline constexpr size_t kBlockEvictions = 3;

// Counts of events of a kind's blocks, since it was opened.
struct KindCounters {
  uint64_t hits = 0;     // keys that Lookup and Acquire found ready
  uint64_t misses = 0;   // that they found missing
  uint64_t pending = 0;  // that they found being written
  uint64_t reserved = 0;
  uint64_t published = 0;
  uint64_t discarded =
      0;  // given back unwritten, by calls or by a session's end
  uint64_t duplicates = 0;  // published when the key was ready already
  uint64_t overdue =
      0;  // took longer than the write limit, and were reserved anew
  uint64_t no_room = 0;  // keys that Reserve had no room for
  std::array<uint64_t, kBlockEvictions> evicted{};  // by BlockEviction
  uint64_t extents_lost = 0;                        // to other kinds

  KindCounters& operator+=(const KindCounters& other);
  uint64_t evicted_blocks() const;  // for whatever reason
};

struct KindStats {
  BlockKind kind;
  bool is_newest = true;       // of its name
  uint32_t open_sessions = 0;  // that have it open
  uint32_t extents = 0;
  uint64_t block_bytes = 0;  // shards * shard_stride
  uint64_t ready_blocks = 0;
  uint64_t locked_blocks = 0;   // of them: distinct blocks with a lock
  uint64_t written_blocks = 0;  // reserved, by sessions that live or are lost
  uint64_t free_blocks = 0;     // room for blocks in its extents
  // Since the last use of the block that would be evicted first; in calls that
  // used blocks. Zero: none can be evicted.
  uint64_t coldest_age = 0;
  KindCounters counters;
};

// One consistent picture.
struct BlockStats {
  uint64_t memory_bytes = 0;
  uint64_t extent_bytes = 0;
  uint32_t extents = 0;
  uint32_t free_extents = 0;
  uint32_t locks = 0;  // block locks and reservations of all sessions
  uint32_t reservations = 0;
  uint64_t quarantined_locks = 0;   // locked blocks of lost sessions
  uint64_t quarantined_blocks = 0;  // blocks that those may still write to
  uint64_t index_bytes = 0;         // what all records and indexes take
  std::vector<KindStats> kinds;     // in the order of their numbers
  KindCounters ended_kinds;         // the sum of those that are gone
  // How often a process took the blocks over from one before.
  uint64_t recoveries = 0;
};

// At most `limit` of the kinds, those with the most memory first. They are in
// `stats`.
std::vector<const KindStats*> LargestKinds(const BlockStats& stats,
                                           size_t limit);

// Why a key is found or not.
enum class BlockFate {
  kReady,
  kPending,
  kOverdue,      // is written for longer than the limit, and reads as missing
  kEvicted,      // among the last 65,536 evictions
  kNeverStored,  // or evicted long ago, or given back unwritten
};

struct BlockExplanation {
  BlockFate fate = BlockFate::kNeverStored;
  BlockPlace place = kMissingBlock;  // where it is, or is written
  uint32_t locks = 0;
  uint32_t followers = 0;  // blocks that remember it as the one before them
  // Since it was evicted, or reserved.
  absl::Duration age;
  std::optional<BlockEviction> eviction;  // with kEvicted
  // Who writes it: with kPending and kOverdue.
  SessionNumber writer;
  std::string client_name;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_BLOCK_REQUESTS_H_
