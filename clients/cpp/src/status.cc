#include "clients/cpp/src/status.h"

#include <grpcpp/support/status.h>

#include <string>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "pando/errors.h"

namespace pando {
inline namespace client {
namespace {

constexpr char kReasonPayload[] = "pando/reason";
constexpr char kRetryPayload[] = "pando/retry_after";

// Returns the first detail of this type; empty if there is none.
template <typename Detail>
Detail DetailIn(const google::rpc::Status& status) {
  for (const google::protobuf::Any& any : status.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return {};
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

// Adds what `details` say beside the code and the message.
absl::Status WithDetails(absl::Status status,
                         const google::rpc::Status& details) {
  if (const auto retry = DetailIn<google::rpc::RetryInfo>(details);
      retry.has_retry_delay()) {
    status.SetPayload(
        kRetryPayload,
        absl::Cord(absl::FormatDuration(ToDuration(retry.retry_delay()))));
  }
  return WithReason(std::move(status),
                    DetailIn<google::rpc::ErrorInfo>(details).reason());
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) details.Clear();
  // The codes of the two are the same numbers.
  return WithDetails(
      absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                   status.error_message()),
      details);
}

absl::Status FromStatusMessage(std::span<const std::byte> message) {
  google::rpc::Status status;
  if (!status.ParseFromArray(message.data(),
                             static_cast<int>(message.size())) ||
      status.code() == 0) {
    return absl::InternalError("the error is not a google.rpc.Status");
  }
  return FromStatusMessage(status);
}

absl::Status FromStatusMessage(const google::rpc::Status& status) {
  return WithDetails(absl::Status(static_cast<absl::StatusCode>(status.code()),
                                  status.message()),
                     status);
}

absl::Status WithReason(absl::Status status, std::string_view reason) {
  if (!reason.empty()) {
    status.SetPayload(kReasonPayload, absl::Cord(std::string(reason)));
  }
  return status;
}

bool IsUnanswered(const absl::Status& status) {
  return (absl::IsUnavailable(status) || absl::IsCancelled(status)) &&
         ReasonOf(status).empty();
}

bool MayHaveActed(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || IsUnanswered(status);
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonPayload);
  return payload ? std::string(*payload) : "";
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryPayload);
  absl::Duration time;
  if (!payload || !absl::ParseDuration(std::string(*payload), &time)) {
    return std::nullopt;
  }
  return time;
}

}  // namespace client
}  // namespace pando
