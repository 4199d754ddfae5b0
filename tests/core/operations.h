#ifndef PANDO_TESTS_CORE_OPERATIONS_H_
#define PANDO_TESTS_CORE_OPERATIONS_H_

// Programs for a PrefixCache. An operation describes sessions, locks and pages
// ("the newest lock of session 2") instead of naming their ids, so a program
// means the same in every run. Executor turns each operation into a request.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>

#include "core/eviction/eviction_policy.h"
#include "core/requests/requests.h"

namespace pando::program {

// The number of session slots. Each slot holds one session after another.
inline constexpr uint8_t kSlots = 4;
// The number of namespaces, as (extra_key, cache_salt): the token namespaces
// (unset, unset), ("", unset), ("bc", "a") and ("\0bc", "ab"), and the bigram
// namespaces (unset, unset) and ("bc", unset).
inline constexpr uint8_t kNamespaces = 6;

// A prompt of one letter for each page (see SpellTokens), followed by `tail`
// tokens. In a bigram namespace the prompt has one token more, so that each
// letter still is a page.
struct Prompt {
  uint8_t ns = 0;
  std::string letters;
  uint8_t tail = 0;
};

struct LockChoice {
  enum class Kind : uint8_t {
    kNone,
    kHeld,  // one of the locks that the session holds
    kSeen,  // one of the latest locks of all sessions, even if released
  };
  Kind kind = Kind::kNone;
  uint8_t index = 0;  // counted from the newest, modulo their number
};

// The choice of a handle to start a prompt at. The prompt is then in the
// handle's namespace. In a bigram namespace the prompt's first token repeats
// the last token before it.
struct HandleChoice {
  bool is_used = false;
  uint8_t index = 0;  // among the latest handles, counted from the newest
  // The way in which the handle is forged, if it is.
  enum class Forgery : uint8_t {
    kNone,
    kOnePageLess,
    kOnePageMore,
    kNotAligned,
    kUnknownNode,
    kOtherNamespace,  // the prompt stays in its own namespace
    kNotContinuous,   // the prompt begins with a token of its own
  };
  Forgery forgery = Forgery::kNone;
};
inline constexpr uint8_t kForgeries = 7;

// The way in which the last page of a list is made wrong.
enum class Fault : uint8_t {
  kNone,
  kPadding,
  kOutOfRange,
  kListedTwice,
  kSomeoneElses,  // a page of another session, or of no session
  kMissing,
};
inline constexpr uint8_t kFaults = 6;

// In all operations below, a request id of zero means no id. The other ids are
// few, so that some are repeated.

struct Match {
  uint8_t slot = 0;
  Prompt prompt;
  std::optional<uint16_t> max_tokens;
  bool lock = false;
  uint16_t reserve_tokens = 0;
  bool touch = true;
  bool wait = false;
  HandleChoice after;
  uint8_t request_id = 0;
};

struct Score {
  Prompt prompt;
  std::optional<uint16_t> max_tokens;
  HandleChoice after;
};

struct CancelWait {
  uint8_t index = 0;  // among the latest waits, counted from the newest
};

// The held prompt and the sent one are cut to as many pages as the session has.
struct Insert {
  uint8_t slot = 0;
  Prompt prompt;
  LockChoice anchor;
  LockAction lock_action = LockAction::kKeep;
  bool names_namespace = true;
  // Whether the insert passes the cache's own pages for the cached part, as
  // after a match. Otherwise the insert passes duplicates.
  bool reuse_cached = false;
  bool keep_duplicates = false;
  uint8_t free_pages = 0;
  Fault fault = Fault::kNone;
  // The number of tokens to take from the prompt that the anchor holds. These
  // tokens come before the sent ones. Executor takes the number modulo the held
  // prompt's length plus two, so it can be one too many.
  uint16_t prompt_tokens = 0;
  HandleChoice after;
  int8_t priority = 0;
  std::optional<uint16_t> output_tokens;
  ExpectedReuse expected_reuse = ExpectedReuse::kUnknown;
  uint8_t retain_seconds = 0;
  uint8_t request_id = 0;
};

struct Lock {
  uint8_t slot = 0;
  Prompt prompt;
  HandleChoice after;
  uint8_t request_id = 0;
};

struct Unlock {
  uint8_t slot = 0;
  LockChoice lock;
  bool twice = false;
  uint8_t request_id = 0;
};

struct Allocate {
  uint8_t slot = 0;
  uint8_t pages = 0;
  std::optional<uint8_t> min_pages;
  uint8_t ns = 0;
  uint8_t request_id = 0;
};

struct Free {
  uint8_t slot = 0;
  uint8_t pages = 0;
  Fault fault = Fault::kNone;
  uint8_t request_id = 0;
};

struct Evict {
  uint8_t pages = 0;
};

struct EvictToWatermark {};

struct Flush {};

struct FlushNamespace {
  uint8_t ns = 0;
};

struct SetPolicy {
  EvictionPolicyKind policy = EvictionPolicyKind::kLru;
};

// Opens a session in the slot. Does nothing if the slot's session is live.
struct OpenSession {
  uint8_t slot = 0;
};

// Attaches a writer. A writer of zero is one that cannot be watched.
struct AttachSession {
  uint8_t slot = 0;
  uint8_t writer = 0;
};

struct CloseSession {
  uint8_t slot = 0;
};

struct SuspendSession {
  uint8_t slot = 0;
  uint8_t grace_seconds = 0;
};

struct ResumeSession {
  uint8_t slot = 0;
};

struct WriterGone {
  uint8_t writer = 1;
};

// Frees the quarantined pages of the session that is or was in the slot.
struct FreeQuarantine {
  uint8_t slot = 0;
};

// Lets time pass and ends all sessions and quarantines that are due.
struct ExpireSessions {
  uint8_t passed_seconds = 0;
  uint8_t quarantine_seconds = 0;
};

using Operation =
    std::variant<Match, Score, CancelWait, Insert, Lock, Unlock, Allocate, Free,
                 Evict, EvictToWatermark, Flush, FlushNamespace, SetPolicy,
                 OpenSession, AttachSession, CloseSession, SuspendSession,
                 ResumeSession, WriterGone, FreeQuarantine, ExpireSessions>;

// Prints the operation in one line, such as `s1 match n0 "aab"+2 reserve 12
// lock`.
std::ostream& operator<<(std::ostream& out, const Operation& operation);

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_OPERATIONS_H_
