// What the calls about prefixes take and answer.
#ifndef PANDO_REQUESTS_H_
#define PANDO_REQUESTS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "pando/lock.h"
#include "pando/types.h"

namespace pando {
inline namespace client {

struct MatchOptions {
  Namespace ns = {};
  // Caps the match, in tokens of the prompt: an engine must compute at least
  // one token of it. Unset: no cap. Zero: no match.
  std::optional<uint32_t> max_tokens = {};
  // Lock what matched, in the same step.
  bool lock = false;
  // Reserve pages, in the same step, so that there is room for this many
  // tokens counted from the start of the prompt. Refused without lock. Zero:
  // reserve nothing.
  uint32_t reserve_tokens = 0;
  // Whether the match makes the prefix recently used.
  bool touch = true;
  // A prefix of the prompt that was matched or inserted before: its tokens are
  // not sent. They must be the first tokens of the prompt; nobody compares.
  PrefixHandle after = {};
  // How long to wait, at most ten minutes, while another request computes the
  // page after the match, instead of computing it too. Refused without lock.
  // It adds to the deadline of the call.
  absl::Duration pending_wait = absl::ZeroDuration();
};

// Whether another request was computing the page after the match, and how the
// wait for it ended.
enum class PendingOutcome {
  // Nobody else was computing it.
  kNone,
  // Another request is computing it; this one did not wait.
  kNotAwaited,
  // It was published while this one waited.
  kPublished,
  // Its owner gave it up.
  kGivenUp,
  // The session of its owner ended.
  kOwnerLost,
  // MatchOptions::pending_wait passed.
  kTimedOut,
};

struct Match {
  // Tokens of the cached prefix from the start of the prompt, whole pages.
  uint32_t matched_tokens = 0;
  // Pages of the cached prefix that MatchOptions::after covers, and that the
  // caller therefore knows: they did not change. Zero without a handle, and
  // when the handle was gone.
  uint32_t first_page = 0;
  // The pages of the cached prefix from first_page on, in prompt order.
  std::vector<PageId> page_ids;
  // Held when MatchOptions::lock was set, even when nothing matched: it is
  // then the anchor of an Insert.
  Lock lock;
  // What MatchOptions::reserve_tokens asked for.
  ReservedPages reserved;
  // Where the match ended.
  PrefixHandle handle;
  PendingOutcome pending = PendingOutcome::kNone;
};

// One prompt of a queue; the fields are those of a match.
struct PrefixQuery {
  std::span<const Token> tokens;
  Namespace ns = {};
  std::optional<uint32_t> max_tokens = {};
  PrefixHandle after = {};
};

struct PrefixScore {
  // Tokens of the cached prefix from the start of the prompt, whole pages.
  uint32_t matched_tokens = 0;
  // Another request is computing the page after the match.
  bool is_pending = false;

  friend bool operator==(const PrefixScore&, const PrefixScore&) = default;
};

// What an anchored Insert does with its lock.
enum class LockAction {
  kKeep,
  // The lock moves to the end of what was inserted: one chunk of a prefill.
  kRelock,
  // The lock is released: the request is finished.
  kUnlock,
};

struct InsertOptions {
  // The anchor: tokens and page ids begin at its boundary, in its namespace.
  Lock* lock = nullptr;
  LockAction lock_action = LockAction::kKeep;
  // Without a lock: the session that reserved the pages, and the namespace.
  uint64_t session_id = 0;
  Namespace ns = {};
  // Pages whose tokens were cached already are freed, unless this is set: then
  // they stay reserved.
  bool keep_duplicates = false;
  // Reserved pages to free in the same step: what a finished request has left.
  std::span<const PageId> free_page_ids = {};
  // This many tokens of the admitted prompt, from the lock's boundary on, come
  // before `tokens`: the server holds them since MatchPrefix reserved pages for
  // them, so a prompt travels once. Needs lock.
  uint32_t prompt_tokens = 0;
  // Without a lock: a prefix of the tokens that was matched or inserted before.
  // It is not sent; tokens and page ids are nevertheless those from the start,
  // and must begin with those of the prefix.
  PrefixHandle after = {};
  // For the eviction policy "priority": the prefix is kept longer the higher
  // it is; the highest that it was inserted with counts.
  int32_t priority = 0;
};

struct InsertResult {
  // Tokens of the call that were cached already, whole pages.
  uint32_t existing_tokens = 0;
  // The cache's pages for those tokens.
  std::vector<PageId> canonical_page_ids;
  // The cache's page for every page of the call, from first_page on: what the
  // block table should name. canonical_page_ids, then the call's own.
  std::vector<PageId> page_ids;
  // Pages that InsertOptions::after covers; zero when it was gone.
  uint32_t first_page = 0;
  uint32_t freed_duplicates = 0;
  // Where the insert ended.
  PrefixHandle handle;
};

struct LockOptions {
  Namespace ns = {};
  // As in MatchOptions.
  PrefixHandle after = {};
};

struct FlushResult {
  uint32_t evicted_pages = 0;
  uint32_t protected_pages = 0;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_REQUESTS_H_
