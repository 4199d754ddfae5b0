// The requests and answers of the calls about prefixes.
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

// How a match treats tokens that are not cached any more, but kept in a tier.
// Matches that begin after a handle are not looked up there.
enum class Load {
  // They are loaded for matches that lock and have a pending_wait.
  kServerPolicy,
  // Nothing is loaded; Match::loadable_tokens says what could be.
  kNo,
  // A load begins, whether this match waits for it or not.
  kStart,
};

struct MatchOptions {
  Namespace ns = {};
  // Caps the match, in tokens. An engine must compute at least one token of a
  // prompt, so it sets this to the length of the prompt less one. Unset: no
  // cap. Zero: no match.
  std::optional<uint32_t> max_tokens = {};
  // Lock what matched, in the same step.
  bool lock = false;
  // Reserve pages, in the same step, so that matched and reserved pages
  // together have room for this many tokens from the start of the prompt: the
  // prompt's and those to be generated. Needs lock. Zero: reserve nothing.
  uint32_t reserve_tokens = 0;
  // Whether the match counts as a use of the prefix, for the eviction policy.
  bool touch = true;
  // A handle of a prefix of this prompt, from an earlier match or insert: the
  // tokens that it covers are not sent. They must be the first tokens of the
  // prompt; they are not compared.
  PrefixHandle after = {};
  // While another request computes the page after the match: how long to wait
  // for it instead of computing the page again, at most ten minutes. Needs
  // lock. It is added to the deadline of the call. Zero: do not wait.
  absl::Duration pending_wait = absl::ZeroDuration();
  Load load = Load::kServerPolicy;
};

// Says whether the page after the match was pending (another request was
// computing it), and how the wait for it ended.
enum class PendingOutcome {
  // No worker was computing it.
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
  // It was loaded from a tier while this one waited.
  kLoaded,
};

struct Match {
  // The length of the cached prefix in tokens, a multiple of page_tokens.
  uint32_t matched_tokens = 0;
  // How many pages of the cached prefix MatchOptions::after covers. The caller
  // knows them already, and they have not changed. Zero without a handle, and
  // when the handle was gone.
  uint32_t first_page = 0;
  // The pages of the cached prefix from first_page on, in prompt order.
  std::vector<PageId> page_ids;
  // Held when MatchOptions::lock was set, even when nothing matched: an Insert
  // is anchored at it.
  Lock lock;
  // The pages that MatchOptions::reserve_tokens asked for.
  ReservedPages reserved;
  // The handle of the end of the match.
  PrefixHandle handle;
  PendingOutcome pending = PendingOutcome::kNone;
  // How many tokens after the match a tier has, and which one. Zero when the
  // match was not looked up there (see Load).
  uint32_t loadable_tokens = 0;
  Tier loadable_tier = Tier::kNone;
};

// One prompt of a waiting queue; the fields are those of MatchPrefix.
struct PrefixQuery {
  std::span<const Token> tokens;
  Namespace ns = {};
  std::optional<uint32_t> max_tokens = {};
  PrefixHandle after = {};
};

struct PrefixScore {
  // The length of the cached prefix in tokens, a multiple of page_tokens.
  uint32_t matched_tokens = 0;
  // Whether another request is computing the page after the match.
  bool is_pending = false;
  // See Match. They are set with ScoreOptions::tell_loadable.
  uint32_t loadable_tokens = 0;
  Tier loadable_tier = Tier::kNone;

  friend bool operator==(const PrefixScore&, const PrefixScore&) = default;
};

struct ScoreOptions {
  // Say what a tier has of each prompt. The server hashes the prompts for that,
  // 262,144 tokens at most, and they are sent whole, with no handle.
  bool tell_loadable = false;
};

// The expected next use of a prefix: a hint for eviction.
enum class ExpectedReuse {
  kUnknown,
  // The prefix is not expected to be used again: the pages that only it uses
  // are evicted first, until they are used again.
  kEnded,
  // The next use is expected within seconds, as after a tool call. The prefix
  // is retained for retain_seconds or, if that is 0, for as long as its quota
  // class allows.
  kSoon,
};

// Says what happens to the lock of an anchored Insert.
enum class LockAction {
  // The lock stays where it is.
  kKeep,
  // The lock moves to the end of the inserted pages; for a chunk of a prefill.
  kRelock,
  // The lock is released: the request is finished.
  kUnlock,
};

struct InsertOptions {
  // The anchor: tokens and page ids begin at the boundary of this lock, in its
  // namespace. When a call that was to move it ends without an answer, further
  // pages are refused with reason::kLockInDoubt.
  Lock* lock = nullptr;
  LockAction lock_action = LockAction::kKeep;
  // Without a lock: the session that reserved the pages, and the namespace.
  uint64_t session_id = 0;
  Namespace ns = {};
  // Duplicates (pages whose tokens were cached already) are freed, unless this
  // is set: then they stay reserved.
  bool keep_duplicates = false;
  // Reserved pages to free in the same step: those that a finished request did
  // not use.
  std::span<const PageId> free_page_ids = {};
  // This many tokens of the admitted prompt, from the lock's boundary on, come
  // before `tokens` and need not be sent: the server holds them since
  // MatchPrefix reserved pages for them. Needs lock.
  uint32_t prompt_tokens = 0;
  // Without a lock: a handle of a prefix of `tokens`, from an earlier match or
  // insert. The tokens that it covers are not sent. `tokens` and `page_ids` are
  // still those from the start of the prompt, the prefix included.
  PrefixHandle after = {};
  // For the eviction policy "priority": a prefix of higher priority is kept
  // longer. If several inserts give a priority, the highest counts.
  int32_t priority = 0;
  // How many tokens the request has generated so far, published or not: a hint
  // for the eviction policy "reuse". If it is unset, the tokens count that were
  // inserted after the prompt.
  std::optional<uint32_t> output_tokens = {};
  // The expected next use of the prefix.
  ExpectedReuse expected_reuse = ExpectedReuse::kUnknown;
  // Retain the prefix for so long, at most for as long as its quota class
  // allows. Must be 0 with kEnded.
  uint32_t retain_seconds = 0;
};

struct InsertResult {
  // How many tokens of the call were cached already, a multiple of page_tokens.
  uint32_t existing_tokens = 0;
  // The cache's pages for those tokens: use them instead of your duplicates.
  std::vector<PageId> canonical_page_ids;
  // The cache's page for every page of the call, from first_page on, for the
  // block table: canonical_page_ids, then the call's own pages.
  std::vector<PageId> page_ids;
  // How many pages InsertOptions::after covers; zero when it was gone.
  uint32_t first_page = 0;
  uint32_t freed_duplicates = 0;
  // The handle of the end of the insert.
  PrefixHandle handle;
};

struct LockOptions {
  Namespace ns = {};
  // See MatchOptions::after.
  PrefixHandle after = {};
};

struct FlushResult {
  uint32_t evicted_pages = 0;
  uint32_t protected_pages = 0;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_REQUESTS_H_
