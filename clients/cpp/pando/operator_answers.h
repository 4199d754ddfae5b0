// The answers of Operator's calls. Nothing here shows tokens or cache salts.
#ifndef PANDO_OPERATOR_ANSWERS_H_
#define PANDO_OPERATOR_ANSWERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pando/events.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

// The first of many, up to the limit that was asked for.
template <typename Item>
struct Listing {
  std::vector<Item> items = {};
  // How many there are, whether they are listed or not.
  uint32_t total = 0;
};

// One namespace with something cached or locked.
struct NamespaceInfo {
  // Names the namespace as long as something is in it, until pandod ends.
  uint64_t number = 0;
  std::optional<std::string> extra_key = {};
  bool has_cache_salt = false;
  bool bigram = false;
  uint32_t evictable_pages = 0;
  uint32_t protected_pages = 0;
  uint32_t nodes = 0;
};

// One session that is open: an attached worker.
struct SessionInfo {
  // Sessions are numbered as they are opened; their ids are secret.
  uint32_t session_number = 0;
  std::string client_name = {};
  uint32_t locks = 0;
  uint32_t reserved_pages = 0;
  uint64_t age_ms = 0;
  // Its connection stands; otherwise it ends soon, unless it is resumed.
  bool is_connected = false;
  // It has mapped the pool.
  bool is_attached = false;
  // Blocks that it has locked, each as often as it is locked, and reserved.
  uint32_t locked_blocks = 0;
  uint32_t reserved_blocks = 0;
  // It is pandod's own, which copies pages to and from tiers, and no worker's.
  bool is_internal = false;
  // How many steps its calls have taken: a short call is one or two, a large
  // one is many.
  uint64_t steps = 0;
};

// One lock that is held.
struct LockInfo {
  uint32_t session_number = 0;
  std::string client_name = {};
  uint32_t locked_tokens = 0;
  uint64_t age_ms = 0;
  uint64_t namespace_number = 0;
};

// A lost session whose pages wait, because its processes may still write.
struct QuarantineInfo {
  uint32_t session_number = 0;
  std::string client_name = {};
  uint32_t pages = 0;
  // Since the session was lost.
  uint64_t age_ms = 0;
  // A process is known to hold the memory: no time frees the pages meanwhile.
  bool is_held = false;
  // Those who attached themselves and that pandod can see; no heirs of theirs.
  std::vector<int32_t> living_pids = {};
  // A process that mapped the pool cannot be watched: the quarantine time
  // counts.
  bool has_unwatched = false;
  uint32_t locked_blocks = 0;
  uint32_t reserved_blocks = 0;
};

// Why a match ended where it did.
enum class MatchEnd {
  kUnknown,
  // Every token is cached.
  kComplete,
  // The rest is less than a page.
  kPageFloor,
  // The cache continues with other tokens.
  kDiverged,
  // The next page was cached, and was evicted.
  kEvicted,
  // The next page is not known: never cached, or evicted long ago.
  kNeverCached,
};

// Why what a tier has is not loaded.
enum class NotLoaded {
  // There is nothing to load, or it is being loaded.
  kNone,
  // No match has asked for it: see Load.
  kNotAsked,
  // It is less than --tier-min-load-tokens.
  kTooFew,
  // Other loads, or what is cached of the prompt, leave no room for it.
  kNoRoom,
  // A pando-mover that copies pages of the pool is missing.
  kNoMover,
};

// Why a prompt matches as far as it does, and no further.
struct Explanation {
  uint32_t matched_tokens = 0;
  MatchEnd end = MatchEnd::kUnknown;
  // With kDiverged: tokens from the start that the cache has in common with the
  // prompt, more than matched_tokens when it diverges within a page.
  uint32_t diverged_at = 0;
  // With kEvicted, like evicted_ms_ago.
  EvictionReason evicted_for = EvictionReason::kUnknown;
  uint64_t evicted_ms_ago = 0;
  // Another call is computing the next page.
  bool is_pending = false;
  // Numbers of namespaces that have more of these tokens; at most 16.
  std::vector<uint64_t> longer_in_namespaces = {};
  // Locks on what matched, at most 100.
  std::vector<LockInfo> locks = {};
  // How many tokens after the match a tier has, and which one.
  uint32_t loadable_tokens = 0;
  Tier loadable_tier = Tier::kNone;
  NotLoaded not_loaded = NotLoaded::kNone;
};

// One generation of a kind of blocks. Counts are since it was made.
struct KindInfo {
  uint32_t kind_number = 0;
  uint32_t generation = 0;
  // No later generation has taken its place.
  bool is_newest = false;
  std::string label = {};
  std::string identity = {};
  std::optional<std::string> extra_key = {};
  bool has_cache_salt = false;
  uint32_t key_bytes = 0;
  uint32_t shards = 0;
  // All shards of a block together.
  uint64_t block_bytes = 0;
  // Sessions that have it open.
  uint32_t sessions = 0;
  // All of its extents together.
  uint64_t memory_bytes = 0;
  uint64_t evictable_blocks = 0;
  uint64_t protected_blocks = 0;
  uint64_t reserved_blocks = 0;
  // Room for more blocks in its extents.
  uint64_t free_blocks = 0;
  // Keys of look-ups that were ready, missing, and being written.
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t pending = 0;
  uint64_t published_blocks = 0;
  uint64_t evicted_blocks = 0;
  // Keys that a reservation had no room for.
  uint64_t no_room = 0;
  // Blocks that were reserved anew, because they took too long to be written.
  uint64_t overdue = 0;
};

// Why the block of a key is found or not.
enum class BlockFate {
  kUnknown,
  kReady,
  // A live session writes it.
  kPending,
  // It takes too long to be written, reads as missing and may be reserved anew.
  kOverdue,
  // It is among the last 65,536 blocks that were evicted.
  kEvicted,
  // It was never published, or was evicted long ago.
  kNeverStored,
};

enum class BlockEviction {
  kUnknown,
  // Another block of its kind needed room.
  kRoom,
  // Its extent went to another kind.
  kExtent,
  kKindEnded,
};

struct BlockExplanation {
  BlockFate fate = BlockFate::kUnknown;
  // With kReady: how often it is locked, and the blocks that come after it.
  uint32_t locks = 0;
  uint32_t followers = 0;
  // Since it was reserved, with kPending and kOverdue, or evicted.
  uint64_t age_ms = 0;
  // With kEvicted.
  BlockEviction evicted_for = BlockEviction::kUnknown;
  // The writer, with kPending and kOverdue; zero and empty if it is lost.
  uint32_t session_number = 0;
  std::string client_name = {};
};

// A run of pages in the tree.
struct TreeNode {
  // Names the node in this dump, and its children's `parent`.
  uint64_t node = 0;
  // Zero: the root of the namespace.
  uint64_t parent = 0;
  uint64_t namespace_number = 0;
  uint32_t depth = 0;
  // Tokens before the node, from the start of the prompt.
  uint32_t begin_token = 0;
  uint32_t tokens = 0;
  uint32_t pages = 0;
  // The locks on the node and on those below it.
  uint32_t locks = 0;
  // Inserts that contained it.
  uint32_t hits = 0;
  int32_t priority = 0;
  // Accesses to the cache since its last one.
  uint64_t age_accesses = 0;
};

struct TreeDump {
  // Each after its parent.
  std::vector<TreeNode> nodes = {};
  // Nodes that the limit cut off.
  uint32_t omitted = 0;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_OPERATOR_ANSWERS_H_
