#ifndef PANDO_SERVICE_CALLS_CALL_LOG_H_
#define PANDO_SERVICE_CALLS_CALL_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pando {

// A call that was answered, for the log. The views and `status` outlive the
// call of the log function.
struct AnsweredCall {
  absl::string_view service;
  absl::string_view method;
  const absl::Status& status;
  absl::Duration time;  // spent in its handler, without its waits
  std::string peer;
  uint64_t request_id = 0;  // zero: the request has no id
};

// Logs a call whose handler took as long as the option slow-call, or longer.
void LogSlowCall(const AnsweredCall& call);
// Logs a call that was answered with an error. The error's message is left out,
// because it repeats values from the request.
void LogRefusedCall(const AnsweredCall& call);

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_CALL_LOG_H_
