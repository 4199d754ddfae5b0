#ifndef PANDO_SERVICE_CALLS_CALL_LOG_H_
#define PANDO_SERVICE_CALLS_CALL_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace pando {

// A call that was answered.
struct AnsweredCall {
  absl::string_view service;
  absl::string_view method;
  const absl::Status& status;
  absl::Duration time;  // in its handler
  std::string peer;
  uint64_t request_id = 0;  // zero: none
};

// Logs a call that was slow.
void LogSlowCall(const AnsweredCall& call);
// Logs a call that was refused, without the message, which names values.
void LogRefusedCall(const AnsweredCall& call);

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_CALL_LOG_H_
