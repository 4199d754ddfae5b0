#include "core/requests/errors.h"

#include <array>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace pando {
namespace {

constexpr absl::string_view kReasonPayload = "pando/reason";
// The payload is one byte, the number of the subject.
constexpr absl::string_view kSubjectPayload = "pando/subject";

struct ReasonEntry {
  Reason reason;
  std::string_view name;
  absl::StatusCode code;
};

constexpr std::array kReasons = {
    ReasonEntry{Reason::kInvalidAlignment, "INVALID_ALIGNMENT",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kInvalidField, "INVALID_FIELD",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kEmptyRequest, "EMPTY_REQUEST",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kTooManyTokens, "TOO_MANY_TOKENS",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kDuplicatePage, "DUPLICATE_PAGE",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kPageOutOfRange, "PAGE_OUT_OF_RANGE",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kPageNotOwned, "PAGE_NOT_OWNED",
                absl::StatusCode::kFailedPrecondition},
    ReasonEntry{Reason::kNamespaceMismatch, "NAMESPACE_MISMATCH",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kLockUnknown, "LOCK_UNKNOWN",
                absl::StatusCode::kNotFound},
    ReasonEntry{Reason::kLockMoved, "LOCK_MOVED", absl::StatusCode::kAborted},
    ReasonEntry{Reason::kHandleGone, "HANDLE_GONE",
                absl::StatusCode::kNotFound},
    ReasonEntry{Reason::kRequestIdReused, "REQUEST_ID_REUSED",
                absl::StatusCode::kInvalidArgument},
    ReasonEntry{Reason::kSessionLost, "SESSION_LOST",
                absl::StatusCode::kFailedPrecondition},
    ReasonEntry{Reason::kLayoutMismatch, "LAYOUT_MISMATCH",
                absl::StatusCode::kFailedPrecondition},
    ReasonEntry{Reason::kPoolExhausted, "POOL_EXHAUSTED",
                absl::StatusCode::kResourceExhausted},
    ReasonEntry{Reason::kQuotaExceeded, "QUOTA_EXCEEDED",
                absl::StatusCode::kResourceExhausted},
    ReasonEntry{Reason::kSessionLimit, "SESSION_LIMIT",
                absl::StatusCode::kResourceExhausted},
    ReasonEntry{Reason::kRateLimited, "RATE_LIMITED",
                absl::StatusCode::kResourceExhausted},
    ReasonEntry{Reason::kDraining, "DRAINING", absl::StatusCode::kUnavailable},
    ReasonEntry{Reason::kNoKeeper, "NO_KEEPER",
                absl::StatusCode::kFailedPrecondition},
    ReasonEntry{Reason::kNoCredential, "NO_CREDENTIAL",
                absl::StatusCode::kUnauthenticated},
    ReasonEntry{Reason::kRoleRefused, "ROLE_REFUSED",
                absl::StatusCode::kPermissionDenied},
    ReasonEntry{Reason::kNamespaceRefused, "NAMESPACE_REFUSED",
                absl::StatusCode::kPermissionDenied},
    ReasonEntry{Reason::kSessionRefused, "SESSION_REFUSED",
                absl::StatusCode::kPermissionDenied},
    ReasonEntry{Reason::kKindUnknown, "KIND_UNKNOWN",
                absl::StatusCode::kNotFound},
    ReasonEntry{Reason::kNoBlockMemory, "NO_BLOCK_MEMORY",
                absl::StatusCode::kFailedPrecondition},
    ReasonEntry{Reason::kPoolOpen, "POOL_OPEN",
                absl::StatusCode::kFailedPrecondition},
};

const ReasonEntry& EntryOf(Reason reason) {
  return kReasons[static_cast<size_t>(reason)];
}

constexpr bool TableIsInEnumOrder() {
  for (size_t i = 0; i < kReasons.size(); ++i) {
    if (static_cast<size_t>(kReasons[i].reason) != i) return false;
  }
  return true;
}
static_assert(TableIsInEnumOrder());

}  // namespace

std::string_view ReasonName(Reason reason) { return EntryOf(reason).name; }

absl::Status MakeError(Reason reason, std::string_view message) {
  return MakeError(reason, Subject::kNone, message);
}

absl::Status MakeError(Reason reason, Subject subject,
                       std::string_view message) {
  const ReasonEntry& entry = EntryOf(reason);
  absl::Status status(entry.code,
                      absl::string_view(message.data(), message.size()));
  status.SetPayload(kReasonPayload, absl::Cord(absl::string_view(
                                        entry.name.data(), entry.name.size())));
  if (subject != Subject::kNone) {
    const auto number = static_cast<char>(subject);
    status.SetPayload(kSubjectPayload,
                      absl::Cord(absl::string_view(&number, 1)));
  }
  return status;
}

Subject SubjectOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kSubjectPayload);
  if (!payload.has_value()) return Subject::kNone;
  return static_cast<Subject>((*payload)[0]);
}

std::optional<Reason> ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  if (!payload.has_value()) return std::nullopt;
  const std::string name(*payload);
  for (const ReasonEntry& entry : kReasons) {
    if (entry.name == name) return entry.reason;
  }
  return std::nullopt;
}

}  // namespace pando
