#include "service/rpc/call_log.h"

#include "absl/strings/str_cat.h"
#include "core/errors.h"
#include "service/logging/log.h"

namespace pando {
namespace {

// A full pool and a caller who left are nobody's mistake.
LogLevel LevelOf(const absl::Status& status) {
  if (absl::IsCancelled(status) || absl::IsResourceExhausted(status)) {
    return LogLevel::kDebug;
  }
  const bool is_ours = absl::IsInternal(status) || absl::IsUnknown(status);
  return is_ours ? LogLevel::kError : LogLevel::kInfo;
}

void LogCall(LogLevel level, absl::string_view words,
             const AnsweredCall& call) {
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
  LogCall(LevelOf(call.status), "call refused", call);
}

}  // namespace pando
