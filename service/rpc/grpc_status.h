#ifndef PANDO_SERVICE_RPC_GRPC_STATUS_H_
#define PANDO_SERVICE_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace pando {

// The same status on the wire, with the details that ToStatusMessage gives it.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_GRPC_STATUS_H_
