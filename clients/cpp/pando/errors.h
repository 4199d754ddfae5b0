// The server's reasons for refusing a call.
#ifndef PANDO_ERRORS_H_
#define PANDO_ERRORS_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace pando {
inline namespace client {

// Returns the stable reason of a failed call, or "" if it has none (a broken
// connection, a deadline). docs/protocol.md lists every reason.
std::string ReasonOf(const absl::Status& status);

// Returns the time after which the call may be repeated, if the server has told
// one.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// The reasons that a worker handles at run time. The other reasons mean that
// the caller made a mistake.
namespace reason {

// The session and everything it held is gone: drop every lock and page id.
inline constexpr std::string_view kSessionLost = "SESSION_LOST";
// Too few pages are free or evictable: wait until requests finish, then try
// again. A request larger than the whole pool never succeeds.
inline constexpr std::string_view kPoolExhausted = "POOL_EXHAUSTED";
// The namespace's quota class is at its cap: wait until requests of that class
// finish, then try again.
inline constexpr std::string_view kQuotaExceeded = "QUOTA_EXCEEDED";
// The session has as many locks, reserved pages or unused attach tokens as it
// may have: the call succeeds once some are given back.
inline constexpr std::string_view kSessionLimit = "SESSION_LIMIT";
// The session calls too often: RetryAfter says when it may again.
inline constexpr std::string_view kRateLimited = "RATE_LIMITED";
// The server is shutting down: finish what runs, admit nothing new.
inline constexpr std::string_view kDraining = "DRAINING";
// Nothing would start the server again.
inline constexpr std::string_view kNoKeeper = "NO_KEEPER";
// No credential of the server fits this client.
inline constexpr std::string_view kNoCredential = "NO_CREDENTIAL";
// The lock is not, or no longer, one of the session.
inline constexpr std::string_view kLockUnknown = "LOCK_UNKNOWN";
// The node of a handle was evicted, or is of an earlier pandod. Client repeats
// the call without the handle, so callers of Client do not see this.
inline constexpr std::string_view kHandleGone = "HANDLE_GONE";
// A request id was used for another kind of call.
inline constexpr std::string_view kRequestIdReused = "REQUEST_ID_REUSED";
// Two calls moved one lock at the same time: try again.
inline constexpr std::string_view kLockMoved = "LOCK_MOVED";

// The client itself gives this reason: an Insert that was to move the lock got
// no answer. Later pages would be cached under a prefix that may not be theirs,
// so the lock can only be released.
inline constexpr std::string_view kLockInDoubt = "LOCK_IN_DOUBT";

}  // namespace reason

}  // namespace client
}  // namespace pando

#endif  // PANDO_ERRORS_H_
