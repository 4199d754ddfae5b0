#ifndef PANDO_SERVICE_CALLS_STATUS_MESSAGE_H_
#define PANDO_SERVICE_CALLS_STATUS_MESSAGE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace pando {

// Returns the error with the time added after which the call may be repeated.
absl::Status WithRetryAfter(absl::Status status, absl::Duration time);

// Converts a status to a message, whose text is at most 1,024 bytes long; a
// longer one is cut. The Reason travels as google.rpc.ErrorInfo, the time of
// WithRetryAfter as google.rpc.RetryInfo.
google::rpc::Status ToStatusMessage(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_STATUS_MESSAGE_H_
