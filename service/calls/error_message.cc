#include "service/calls/error_message.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

// Returns the request field that the error is about, which has the same name in
// every request that has it. Returns "" if the error is not about a field.
std::string_view FieldOf(Subject subject) {
  switch (subject) {
    case Subject::kSession:
      return "session_id";
    case Subject::kSessionNumber:
      return "session_number";
    case Subject::kRequestId:
      return "request_id";
    case Subject::kNamespace:
      return "namespace";
    case Subject::kHandle:
      return "after";
    case Subject::kTokens:
      return "tokens";
    case Subject::kReserveTokens:
      return "reserve_tokens";
    case Subject::kWait:
      return "pending_wait_ms";
    case Subject::kAnchor:
      return "lock_id";
    case Subject::kLockAction:
      return "lock_action";
    case Subject::kPromptTokens:
      return "prompt_tokens";
    case Subject::kRetainSeconds:
      return "retain_seconds";
    case Subject::kPages:
      return "page_ids";
    case Subject::kLocks:
      return "lock_ids";
    case Subject::kKinds:
      return "kinds";
    case Subject::kBlockKeys:
      return "keys";
    case Subject::kBlockLock:
      return "lock";
    case Subject::kReservation:
      return "reservation";
    case Subject::kIndices:
      return "indices";
    case Subject::kNone:
    case Subject::kMaxLocks:
    case Subject::kMaxReservedPages:
    case Subject::kMaxKeptBytes:
    case Subject::kMaxBlockLocks:
    case Subject::kMaxReservedBlocks:
    case Subject::kBlockExtent:
      break;
  }
  return "";
}

// Returns the option that sets the limit which the call would exceed, or "" if
// the error is not about a limit.
std::string_view OptionOf(Subject subject) {
  switch (subject) {
    case Subject::kMaxLocks:
      return "--max-locks-per-session";
    case Subject::kMaxReservedPages:
      return "--max-reserved-pages-per-session";
    case Subject::kMaxKeptBytes:
      return "--max-kept-bytes-per-session";
    case Subject::kMaxBlockLocks:
      return "--max-block-locks-per-session";
    case Subject::kMaxReservedBlocks:
      return "--max-reserved-blocks-per-session";
    case Subject::kBlockExtent:
      return "--block-extent";
    default:
      return "";
  }
}

}  // namespace

std::string MessageOf(const absl::Status& status) {
  const Subject subject = SubjectOf(status);
  const std::string field(FieldOf(subject));
  const std::string option(OptionOf(subject));
  if (!field.empty()) return absl::StrCat(field, ": ", status.message());
  if (!option.empty()) return absl::StrCat(status.message(), " (", option, ")");
  return std::string(status.message());
}

}  // namespace pando
