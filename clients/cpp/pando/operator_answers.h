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
