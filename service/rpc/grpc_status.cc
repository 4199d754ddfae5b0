#include "service/rpc/grpc_status.h"

#include <optional>
#include <string>

#include "core/errors.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace pando {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message(status.message());
  const std::optional<Reason> reason = ReasonOf(status);
  if (!reason.has_value()) return grpc::Status(code, message);

  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(*reason)));
  info.set_domain("pando");
  google::rpc::Status details;
  details.set_code(status.raw_code());
  details.set_message(message);
  details.add_details()->PackFrom(info);
  return grpc::Status(code, message, details.SerializeAsString());
}

}  // namespace pando
