#ifndef PANDO_TESTS_CORE_OPERATIONS_H_
#define PANDO_TESTS_CORE_OPERATIONS_H_

// Programs for a PrefixCache. An operation names sessions, locks and pages by
// what they are ("the newest lock of session 2"), not by id, so that a program
// means the same in every run. Executor turns it into requests.

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <variant>

#include "core/eviction/eviction_policy.h"
#include "core/requests/requests.h"

namespace pando::program {

// Session slots; each holds one session after another.
inline constexpr uint8_t kSlots = 4;
// Namespaces: unset, ("", unset), ("bc", "a"), ("c", "ab"); bigram: unset,
// ("bc", unset).
inline constexpr uint8_t kNamespaces = 6;

// One letter for each page (see SpellTokens), then `tail` tokens. In a bigram
// namespace one more token, so that each letter is a page.
struct Prompt {
  uint8_t ns = 0;
  std::string letters;
  uint8_t tail = 0;
};

struct LockChoice {
  enum class Kind : uint8_t {
    kNone,
    kHeld,  // of those the session holds
    kSeen,  // of the last ones handed out, to whomever, released or not
  };
  Kind kind = Kind::kNone;
  uint8_t index = 0;  // counted from the newest, modulo how many there are
};

// A prompt after a handle is in the handle's namespace, and in a bigram one its
// first token is the last one before.
struct HandleChoice {
  bool is_used = false;
  uint8_t index = 0;  // of the last ones seen, counted from the newest
  // How it is forged, if at all.
  enum class Forgery : uint8_t {
    kNone,
    kOnePageLess,
    kOnePageMore,
    kNotAligned,
    kUnknownNode,
    kOtherNamespace,  // the prompt stays in its own
    kNotContinuous,   // the prompt begins with a token of its own
  };
  Forgery forgery = Forgery::kNone;
};
inline constexpr uint8_t kForgeries = 7;

// How the last page of a list is made wrong.
enum class Fault : uint8_t {
  kNone,
  kPadding,
  kOutOfRange,
  kListedTwice,
  kSomeoneElses,  // or no one's
  kMissing,
};
inline constexpr uint8_t kFaults = 6;

// A request id of zero is none; others are few, so that they come again.

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
  uint8_t index = 0;  // of the last ones seen, counted from the newest
};

// The held prompt and this one are cut to as many pages as the session has.
struct Insert {
  uint8_t slot = 0;
  Prompt prompt;
  LockChoice anchor;
  LockAction lock_action = LockAction::kKeep;
  bool names_namespace = true;
  // Give the cache's pages for what is cached already, as after a match;
  // otherwise duplicates.
  bool reuse_cached = false;
  bool keep_duplicates = false;
  uint8_t free_pages = 0;
  Fault fault = Fault::kNone;
  // Taken from the prompt that the anchor holds, before this one: modulo two
  // more than it has, so that it can be one too many.
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

// Does nothing when the slot's session is live.
struct OpenSession {
  uint8_t slot = 0;
};

// Zero: a writer that cannot be watched.
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

// Frees the quarantined pages of the session that the slot has or had.
struct FreeQuarantine {
  uint8_t slot = 0;
};

// Time passes, and what is over ends.
struct ExpireSessions {
  uint8_t passed_seconds = 0;
  uint8_t quarantine_seconds = 0;
};

using Operation =
    std::variant<Match, Score, CancelWait, Insert, Lock, Unlock, Allocate, Free,
                 Evict, EvictToWatermark, Flush, FlushNamespace, SetPolicy,
                 OpenSession, AttachSession, CloseSession, SuspendSession,
                 ResumeSession, WriterGone, FreeQuarantine, ExpireSessions>;

// One line, such as `s1 match n0 "aab"+2 reserve 12 lock`.
std::ostream& operator<<(std::ostream& out, const Operation& operation);

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_OPERATIONS_H_
