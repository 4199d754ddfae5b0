#ifndef PANDO_SERVICE_RPC_GRPC_STATUS_H_
#define PANDO_SERVICE_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace pando {

// Converts a status to gRPC's, with the details that ToStatusMessage adds.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_GRPC_STATUS_H_
