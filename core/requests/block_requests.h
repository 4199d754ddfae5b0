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

// How much of the block memory some kinds may have together. Memory is counted
// in whole extents; floor and cap are rounded down to these.
struct BlockQuota {
  std::string name;
  // Matches the labels of the kinds, as a shell matches file names.
  std::string label;
  // Kinds of other quotas take no extent from these kinds if that would leave
  // less. While these have less, they take extents from kinds above their own
  // floors, however recently those were used.
  uint64_t floor_bytes = 0;
  std::optional<uint64_t> cap_bytes = {};  // the most that these kinds get

  friend bool operator==(const BlockQuota&, const BlockQuota&) = default;
};

struct BlockQuotaStats {
  BlockQuota quota;
  uint64_t used_bytes = 0;  // of the extents that its kinds have
};

// The sizes of the block memory. With memory_bytes = 0 there are no blocks, and
// each call fails with NO_BLOCK_MEMORY.
struct BlockOptions {
  uint64_t memory_bytes = 0;
  // The size of an extent, the piece of memory that one kind has at a time: a
  // power of two, at least kPlaceBytes. A rest of the memory behind the last
  // extent is not used. A block must fit into one extent.
  uint64_t extent_bytes = uint64_t{16} << 20;
  // If writing a block takes longer than this, the block counts as missing, and
  // other sessions may reserve its key.
  absl::Duration write_limit = absl::Seconds(30);
  std::vector<BlockQuota> quotas = {};
  // Memory for the ledger, which may outlive the process, and the id of the
  // block memory that the ledger describes; see BlockLedger. If `ledger` is
  // empty, the cache allocates its own ledger.
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
inline constexpr size_t kMaxKindsOfSession = 256;  // open at the same time
// The most blocks in an extent. The limit exists because all of them are
// evicted under one hold of the mutex.
inline constexpr uint64_t kMaxBlocksOfExtent = 16'384;
// The most keys in one call, over all its kinds, and the longest window.
inline constexpr size_t kMaxBlockKeys = 16'384;
inline constexpr uint32_t kMaxWindow = 2'048;

// Answers to a key in the place of a place. This one: the key has no block.
inline constexpr BlockPlace kMissingBlock{0xffffffff};
// A live session is writing the block, and not for longer than the write limit.
inline constexpr BlockPlace kPendingBlock{0xfffffffe};
// Answer of Reserve: the block is ready, so there is nothing to write.
inline constexpr BlockPlace kReadyBlock{0xfffffffd};
// Answer of Reserve: no room could be made for the block.
inline constexpr BlockPlace kNoRoomForBlock{0xfffffffc};
// The key was not looked at: the shape does not need it, or other keys have
// already decided the answer.
inline constexpr BlockPlace kNotLookedAt{0xfffffffb};

inline bool IsPlace(BlockPlace place) { return place < kNotLookedAt; }

// A kind: the blocks that one engine layout stores under keys of one length.
struct KindSpec {
  NamespaceKey ns;
  // 1 to kMaxIdentityBytes bytes: a digest of everything that determines the
  // bytes of a block besides its key.
  std::string identity;
  std::string label;  // for operators; at most kMaxLabelBytes
  uint32_t key_bytes = 0;
  uint64_t shard_bytes = 0;
  uint32_t shards = 0;

  friend bool operator==(const KindSpec&, const KindSpec&) = default;
};

// A kind that is open. `number` is 0 if FindKinds found no such kind.
struct BlockKind {
  KindNumber number;
  uint32_t generation = 0;  // 1, then one more with each reset
  // Shard s of a block begins at byte s * shard_stride.
  uint64_t shard_stride = 0;
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

// Which keys Lookup and Acquire look for. Reserve ignores it and handles each
// key.
enum class BlockShape {
  // Each key by itself.
  kEach,
  // The keys from the first one on, up to the first that is not ready.
  kPrefix,
  // The last row of `window` keys that are all ready; if no row is that long,
  // the ready keys from the first key on. The search begins at the end.
  kWindow,
  // The last key that is ready: a window of 1.
  kCheckpoint,
};

// Keys of one kind, in prompt order. The block of a key comes after the block
// of the key before it; that of the first key comes after the block of
// `before`.
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
  // Lock nothing unless each of `keys` is satisfied: all its keys are ready,
  // or, with kWindow and kCheckpoint, a row was found.
  bool all = false;
};

struct ReserveBlocksRequest {
  SessionId session;
  ReservationId reservation;
  std::span<const BlockKeys> keys;
  // Reserve nothing unless there is room for all missing keys.
  bool all = false;
};

// Why a block was evicted.
enum class BlockEviction {
  kRoom,    // for another block of its kind
  kExtent,  // its extent went to another kind
  kReset,   // its kind ended
};
inline constexpr size_t kBlockEvictions = 3;

// Counts of what happened to the blocks of a kind, since this process made the
// kind or took it over.
struct KindCounters {
  uint64_t hits = 0;     // keys that Lookup and Acquire found ready
  uint64_t misses = 0;   // keys that they found missing
  uint64_t pending = 0;  // keys that they found being written
  uint64_t reserved = 0;
  uint64_t published = 0;
  // Given back unwritten, by calls or at the end of a session.
  uint64_t discarded = 0;
  uint64_t duplicates = 0;  // published when the key was ready already
  // Took longer than the write limit, and were reserved anew.
  uint64_t overdue = 0;
  uint64_t no_room = 0;  // keys that Reserve had no room for
  std::array<uint64_t, kBlockEvictions> evicted{};  // by BlockEviction
  uint64_t extents_lost = 0;                        // to other kinds

  KindCounters& operator+=(const KindCounters& other);
  uint64_t evicted_blocks() const;  // for any reason
};

struct KindStats {
  BlockKind kind;
  bool is_newest = true;       // the newest generation of its name
  uint32_t open_sessions = 0;  // sessions that have it open
  uint32_t extents = 0;
  uint64_t block_bytes = 0;  // shards * shard_stride
  uint64_t ready_blocks = 0;
  // How many of ready_blocks are locked, each counted once.
  uint64_t locked_blocks = 0;
  uint64_t written_blocks = 0;  // being written, by live or lost sessions
  uint64_t free_blocks = 0;     // room for blocks in its extents
  // How many uses (calls that used blocks) ago the block that would be evicted
  // first was last used. Zero if no block can be evicted.
  uint64_t coldest_age = 0;
  KindCounters counters;
};

// Stats of the block memory. The totals are of one moment.
struct BlockStats {
  uint64_t memory_bytes = 0;
  uint64_t extent_bytes = 0;
  uint32_t extents = 0;
  uint32_t free_extents = 0;
  uint32_t locks = 0;  // block locks and reservations of all sessions
  uint32_t reservations = 0;
  uint64_t quarantined_locks = 0;  // locked blocks of lost sessions
  // Blocks that lost sessions may still write to.
  uint64_t quarantined_blocks = 0;
  uint64_t index_bytes = 0;      // bytes of all records and indexes
  std::vector<KindStats> kinds;  // in the order of their numbers
  KindCounters ended_kinds;      // the sum of counters of deleted kinds
  // How often a process took the blocks over from one before.
  uint64_t recoveries = 0;
  std::vector<BlockQuotaStats> quotas;  // in the configured order
};

// Returns at most `limit` of the kinds in `stats`, those with the most memory
// first.
std::vector<const KindStats*> LargestKinds(const BlockStats& stats,
                                           size_t limit);

// Why a key is found or not.
enum class BlockFate {
  kReady,
  kPending,
  kOverdue,      // being written for longer than the limit; counts as missing
  kEvicted,      // its eviction is among the last 65,536
  kNeverStored,  // never stored, evicted long ago, or given back unwritten
};

struct BlockExplanation {
  BlockFate fate = BlockFate::kNeverStored;
  BlockPlace place = kMissingBlock;  // where the block is, or is being written
  uint32_t locks = 0;
  uint32_t followers = 0;  // blocks with a good link to it
  // The time since it was evicted, or since it was reserved.
  absl::Duration age;
  std::optional<BlockEviction> eviction;  // with kEvicted
  // The session that writes it, with kPending and kOverdue.
  SessionNumber writer;
  std::string client_name;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_BLOCK_REQUESTS_H_
