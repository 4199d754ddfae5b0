#ifndef PANDO_SERVICE_CALLS_STATUS_MESSAGE_H_
#define PANDO_SERVICE_CALLS_STATUS_MESSAGE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/status.pb.h"

namespace pando {

// The same error, of a call that may be tried again after that time.
absl::Status WithRetryAfter(absl::Status status, absl::Duration time);

// The same status as a message, of which the text may be cut short. A Reason
// travels as google.rpc.ErrorInfo, and beside it a time as
// google.rpc.RetryInfo.
google::rpc::Status ToStatusMessage(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_STATUS_MESSAGE_H_
