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

// The first items of a list, up to the limit that was asked for.
template <typename Item>
struct Listing {
  std::vector<Item> items = {};
  // How many items there are in all, listed or not.
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
  // Whether its connection is open. If not, the session ends soon, unless it is
  // resumed.
  bool is_connected = false;
  // Whether it has mapped the pool.
  bool is_attached = false;
  // How many blocks it has locked, each counted as often as it is locked, and
  // how many it has reserved.
  uint32_t locked_blocks = 0;
  uint32_t reserved_blocks = 0;
  // Whether it is a session of pandod itself, which copies to and from tiers,
  // and not of a worker.
  bool is_internal = false;
  // How many steps its calls have taken: a short call takes one or two, a large
  // one many.
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

// A lost session whose pages are in quarantine, because its processes may still
// write to them.
struct QuarantineInfo {
  uint32_t session_number = 0;
  std::string client_name = {};
  uint32_t pages = 0;
  // The time since the session was lost.
  uint64_t age_ms = 0;
  // Whether a process is known to hold the memory: the quarantine time does not
  // free the pages meanwhile.
  bool is_held = false;
  // The living processes that have attached themselves and that pandod can see.
  // Their child processes, which inherited the memory, are not listed.
  std::vector<int32_t> living_pids = {};
  // Whether a process that mapped the pool cannot be watched: then the
  // quarantine time frees the pages.
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

// Why the tokens that a tier has are not loaded.
enum class NotLoaded {
  // There is nothing to load, or it is being loaded.
  kNone,
  // No match has asked for it: see Load.
  kNotAsked,
  // There are fewer tokens than --tier-min-load-tokens.
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
  // With kDiverged, how many tokens from the start the cache and the prompt
  // have in common. It is more than matched_tokens if they diverge within a
  // page.
  uint32_t diverged_at = 0;
  // These two are set with kEvicted.
  EvictionReason evicted_for = EvictionReason::kUnknown;
  uint64_t evicted_ms_ago = 0;
  // Another call is computing the next page.
  bool is_pending = false;
  // The numbers of namespaces in which more of these tokens are cached; at most
  // 16.
  std::vector<uint64_t> longer_in_namespaces = {};
  // The locks on the matched prefix, at most 100.
  std::vector<LockInfo> locks = {};
  // How many tokens after the match a tier has, and which one.
  uint32_t loadable_tokens = 0;
  Tier loadable_tier = Tier::kNone;
  NotLoaded not_loaded = NotLoaded::kNone;
};

// One generation of a kind of blocks. Counts begin when it was made.
struct KindInfo {
  uint32_t kind_number = 0;
  uint32_t generation = 0;
  // Whether no later generation has replaced it.
  bool is_newest = false;
  std::string label = {};
  std::string identity = {};
  std::optional<std::string> extra_key = {};
  bool has_cache_salt = false;
  uint32_t key_bytes = 0;
  uint32_t shards = 0;
  // The size of a block, all shards together.
  uint64_t block_bytes = 0;
  // How many sessions have it open.
  uint32_t sessions = 0;
  // The size of all its extents together.
  uint64_t memory_bytes = 0;
  uint64_t evictable_blocks = 0;
  uint64_t protected_blocks = 0;
  uint64_t reserved_blocks = 0;
  // How many more blocks fit into its extents.
  uint64_t free_blocks = 0;
  // How many keys of look-ups were ready, missing, and being written.
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t pending = 0;
  uint64_t published_blocks = 0;
  uint64_t evicted_blocks = 0;
  // How many keys reservations had no room for.
  uint64_t no_room = 0;
  // How many blocks were reserved anew because they took too long to be
  // written.
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
  // With kReady: how often the block is locked, and how many blocks follow it.
  uint32_t locks = 0;
  uint32_t followers = 0;
  // The time since the block was reserved (kPending, kOverdue) or evicted
  // (kEvicted).
  uint64_t age_ms = 0;
  // This is set with kEvicted.
  BlockEviction evicted_for = BlockEviction::kUnknown;
  // The session that writes the block, with kPending and kOverdue; zero and
  // empty if it is lost.
  uint32_t session_number = 0;
  std::string client_name = {};
};

// A run of pages in the tree.
struct TreeNode {
  // Names the node in this dump, and its children's `parent`.
  uint64_t node = 0;
  // The parent's `node`; zero if that is the root of the namespace.
  uint64_t parent = 0;
  uint64_t namespace_number = 0;
  uint32_t depth = 0;
  // Tokens before the node, from the start of the prompt.
  uint32_t begin_token = 0;
  uint32_t tokens = 0;
  uint32_t pages = 0;
  // How many locks there are on the node and on those below it.
  uint32_t locks = 0;
  // How many inserts contained the node.
  uint32_t hits = 0;
  int32_t priority = 0;
  // How many accesses to the cache there were since the last access to this
  // node.
  uint64_t age_accesses = 0;
};

struct TreeDump {
  // The nodes, each after its parent.
  std::vector<TreeNode> nodes = {};
  // How many nodes the limit has left out.
  uint32_t omitted = 0;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_OPERATOR_ANSWERS_H_
