#ifndef PANDO_CORE_REQUESTS_REQUESTS_H_
#define PANDO_CORE_REQUESTS_REQUESTS_H_

// The requests and results of PrefixCache: plain structs, so that any transport
// can speak to it. A field means what the field of the same name means in
// proto/pando/v1/prefix_cache.proto. Differences: `anchor` is called lock_id
// there, `pages` is called page_ids, and `wait` means that pending_wait_ms is
// not zero.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/requests/namespace_key.h"

namespace pando {

// Names where a match or an insert ended: `tokens` tokens from the prompt's
// start, in `node` or above it. It keeps nothing cached. A split never moves
// the end of a node, so a handle stays valid after splits. The default names
// the prompt's start.
struct PrefixHandle {
  uint64_t node = 0;
  uint32_t tokens = 0;

  friend bool operator==(const PrefixHandle&, const PrefixHandle&) = default;
};

// How many pages no session held at the time of the answer.
struct PageRoom {
  uint32_t free = 0;
  uint32_t evictable = 0;

  friend bool operator==(const PageRoom&, const PageRoom&) = default;
};

struct MatchRequest {
  SessionId session = {};
  const NamespaceKey& ns;
  std::span<const Token> tokens;
  std::optional<uint32_t> max_tokens = {};
  bool lock = false;
  uint32_t reserve_tokens = 0;
  bool touch = true;
  PrefixHandle after = {};
  // If another call computes the page after the match, wait instead of
  // admitting the request.
  bool wait = false;
  RequestId request_id = {};
};

struct MatchResult {
  uint32_t matched_tokens = 0;
  std::vector<PageId> pages;
  LockId lock;
  std::vector<PageId> reserved;
  PrefixHandle handle = {};
  // Another call is computing the page after the match.
  bool is_pending = false;
  // If set, nothing was locked or reserved: the call waits for a pending page,
  // and must be made again once this wait is over.
  WaitId wait = {};
  PageRoom room = {};
  // Whether this is the answer of an earlier call with this request_id; if so,
  // this call did nothing.
  bool is_repeat = false;
};

// The way in which a wait for a page that another call computes ended.
enum class PendingOutcome {
  kPublished,
  kLoaded,     // published, from a tier
  kGivenUp,    // its owner released the lock or freed the page
  kOwnerLost,  // its owner's session ended
};

// A prompt to search for, without changing anything.
struct PrefixQuery {
  const NamespaceKey& ns;
  std::span<const Token> tokens;
  std::optional<uint32_t> max_tokens = {};
  PrefixHandle after = {};
};

struct PrefixScore {
  uint32_t matched_tokens = 0;
  bool is_pending = false;
};

// The expected next use of a prefix.
enum class ExpectedReuse {
  kUnknown,
  kEnded,  // none
  kSoon,   // within seconds
};

enum class LockAction { kKeep, kRelock, kUnlock };

struct InsertRequest {
  SessionId session;
  const NamespaceKey& ns;
  std::span<const Token> tokens;
  std::span<const PageId> pages;
  LockId anchor = {};
  LockAction lock_action = LockAction::kKeep;
  bool keep_duplicates = false;
  std::span<const PageId> free_pages = {};
  uint32_t prompt_tokens = 0;
  PrefixHandle after = {};
  int32_t priority = 0;
  std::optional<uint32_t> output_tokens = {};
  ExpectedReuse expected_reuse = ExpectedReuse::kUnknown;
  uint32_t retain_seconds = 0;
  // The pages were not computed, but loaded from a tier.
  bool is_load = false;
  // This is a part of an insert, and more parts follow; see Inserting.
  bool is_part = false;
  RequestId request_id = {};
};

struct InsertResult {
  uint32_t existing_tokens = 0;
  std::vector<PageId> canonical_pages;
  uint32_t freed_duplicates = 0;
  PrefixHandle handle = {};
  PageRoom room = {};
  // Whether this is the answer of an earlier call with this request_id; if so,
  // this call did nothing.
  bool is_repeat = false;
};

struct LockRequest {
  SessionId session;
  const NamespaceKey& ns;
  std::span<const Token> tokens;
  PrefixHandle after = {};
  RequestId request_id = {};
};

struct LockResult {
  LockId lock;
  uint32_t locked_tokens = 0;
  PrefixHandle handle = {};
};

struct AllocateRequest {
  SessionId session;
  // The pages count for the quota class of this namespace.
  const NamespaceKey& ns;
  uint32_t pages;
  // If set, at least min_pages and at most `pages` pages are reserved. If
  // unset, all `pages` or none.
  std::optional<uint32_t> min_pages = {};
  RequestId request_id = {};
};

struct AllocateResult {
  std::vector<PageId> pages;
  PageRoom room = {};
  // Whether this is the answer of an earlier call with this request_id; if so,
  // this call did nothing.
  bool is_repeat = false;
};

// Sessions that ended without being closed.
struct ExpiredSessions {
  // Sessions that were lost since the last call, by time or because their
  // processes ended.
  std::vector<SessionNumber> lost;
  // Sessions that were lost now or earlier, and to whose pages nothing writes
  // any more.
  std::vector<SessionId> gone;
};

struct FlushResult {
  uint32_t evicted_pages = 0;
  uint32_t protected_pages = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_REQUESTS_H_
