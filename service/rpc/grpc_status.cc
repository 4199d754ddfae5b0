#include "service/rpc/grpc_status.h"

#include <string>

#include "service/calls/status_message.h"

namespace pando {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  const google::rpc::Status message = ToStatusMessage(status);
  const std::string details =
      message.details().empty() ? "" : message.SerializeAsString();
  return grpc::Status(static_cast<grpc::StatusCode>(message.code()),
                      message.message(), details);
}

}  // namespace pando
