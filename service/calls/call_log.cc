#include "service/calls/call_log.h"

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"
#include "os/logging/log.h"

namespace pando {
namespace {

void LogCall(LogLevel level, absl::string_view words,
             const AnsweredCall& call) {
  if (!IsLogged(level)) return;
  const std::optional<Reason> reason = ReasonOf(call.status);
  Log(level, words,
      {{"method", absl::StrCat(call.service, "/", call.method)},
       {"code", absl::StatusCodeToString(call.status.code())},
       {"reason", reason.has_value() ? ReasonName(*reason) : ""},
       {"duration_us", absl::ToInt64Microseconds(call.time)},
       {"peer", call.peer},
       {"request_id", call.request_id}});
}

}  // namespace

void LogSlowCall(const AnsweredCall& call) {
  LogCall(LogLevel::kWarning, "slow call", call);
}

void LogRefusedCall(const AnsweredCall& call) {
  const absl::Status& status = call.status;
  if (absl::IsInternal(status) || absl::IsUnknown(status)) {
    LogCall(LogLevel::kError, "call failed", call);
    return;
  }
  // A full pool and a caller who left are usual, so these refusals are logged
  // only at the debug level.
  const bool is_usual =
      absl::IsCancelled(status) || absl::IsResourceExhausted(status);
  LogCall(is_usual ? LogLevel::kDebug : LogLevel::kInfo, "call refused", call);
}

}  // namespace pando
