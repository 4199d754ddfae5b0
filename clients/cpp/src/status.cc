#include "clients/cpp/src/status.h"

#include <grpcpp/support/status.h>

#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "pando/errors.h"

namespace pando {
inline namespace client {
namespace {

constexpr char kReasonPayload[] = "pando/reason";

std::string ReasonIn(const std::string& error_details) {
  google::rpc::Status details;
  if (!details.ParseFromString(error_details)) return "";
  for (const google::protobuf::Any& detail : details.details()) {
    google::rpc::ErrorInfo info;
    if (detail.UnpackTo(&info)) return info.reason();
  }
  return "";
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // The codes of the two are the same numbers.
  return WithReason(
      absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                   status.error_message()),
      ReasonIn(status.error_details()));
}

absl::Status WithReason(absl::Status status, std::string_view reason) {
  if (!reason.empty()) {
    status.SetPayload(kReasonPayload, absl::Cord(std::string(reason)));
  }
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  return payload ? std::string(*payload) : "";
}

}  // namespace client
}  // namespace pando
