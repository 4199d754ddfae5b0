#ifndef PANDO_CORE_ERRORS_H_
#define PANDO_CORE_ERRORS_H_

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
  kNoCredential,
  kRoleRefused,
  kNamespaceRefused,
  kSessionRefused,
};

// "POOL_EXHAUSTED" and so on.
std::string_view ReasonName(Reason reason);

// A status that carries `reason`; the reason fixes the status code.
absl::Status MakeError(Reason reason, std::string_view message);

// The reason that MakeError put into `status`, if any.
std::optional<Reason> ReasonOf(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_CORE_ERRORS_H_
