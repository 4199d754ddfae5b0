#ifndef PANDO_SERVICE_RPC_GRPC_STATUS_H_
#define PANDO_SERVICE_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace pando {

// The same error, of a call that may be tried again after that time.
absl::Status WithRetryAfter(absl::Status status, absl::Duration time);

// The same status on the wire; a Reason travels as google.rpc.ErrorInfo, and a
// time as google.rpc.RetryInfo.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_GRPC_STATUS_H_
