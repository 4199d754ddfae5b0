#ifndef PANDO_CORE_REQUESTS_ERRORS_H_
#define PANDO_CORE_REQUESTS_ERRORS_H_

#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace pando {

// Why a call failed, for programs. The names are part of the protocol
// (docs/protocol.md) and never change their meaning.
enum class Reason {
  kInvalidAlignment,
  kInvalidField,
  kEmptyRequest,
  kTooManyTokens,
  kDuplicatePage,
  kPageOutOfRange,
  kPageNotOwned,
  kNamespaceMismatch,
  kLockUnknown,
  kLockMoved,
  kHandleGone,
  kRequestIdReused,
  kSessionLost,
  kLayoutMismatch,
  kPoolExhausted,
  kQuotaExceeded,
  kSessionLimit,
  kRateLimited,
  kDraining,
  kNoKeeper,
  kNoCredential,
  kRoleRefused,
  kNamespaceRefused,
  kSessionRefused,
  kKindUnknown,
  kNoBlockMemory,
  kPoolOpen,
};

// The argument that an error is about, as requests.h and session_limits.h name
// it. A transport has its own names for them (fields, options), and adds its
// name to the message (service/calls/error_message.h).
enum class Subject {
  kNone,
  kSession,
  kSessionNumber,
  kRequestId,
  kNamespace,
  kHandle,  // `after`
  kTokens,
  kReserveTokens,
  kWait,
  kAnchor,
  kLockAction,
  kPromptTokens,
  kRetainSeconds,
  kPages,
  kLocks,
  kMaxLocks,
  kMaxReservedPages,
  kMaxKeptBytes,
  kKinds,
  kBlockKeys,
  kBlockLock,
  kReservation,
  kIndices,
  kMaxBlockLocks,
  kMaxReservedBlocks,
  kBlockExtent,
};

// The name of a reason in the protocol, such as "POOL_EXHAUSTED".
std::string_view ReasonName(Reason reason);

// Makes a status that carries `reason`, which determines the status code, and
// `subject`. The message is a sentence that says what is wrong, with the value
// and the limit; it does not name the field, which differs from transport to
// transport.
absl::Status MakeError(Reason reason, Subject subject,
                       std::string_view message);
absl::Status MakeError(Reason reason, std::string_view message);

// The reason that MakeError put into `status`, if any.
std::optional<Reason> ReasonOf(const absl::Status& status);

// The subject that MakeError put into `status`, or kNone.
Subject SubjectOf(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_ERRORS_H_
