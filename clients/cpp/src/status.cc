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
constexpr char kRetryPayload[] = "pando/retry_after";

// The first detail of this kind; empty when there is none.
template <typename Detail>
Detail DetailIn(const std::string& error_details) {
  google::rpc::Status details;
  if (!details.ParseFromString(error_details)) return {};
  for (const google::protobuf::Any& any : details.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return {};
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  // The codes of the two are the same numbers.
  absl::Status same(static_cast<absl::StatusCode>(status.error_code()),
                    status.error_message());
  const std::string details = status.error_details();
  if (const auto retry = DetailIn<google::rpc::RetryInfo>(details);
      retry.has_retry_delay()) {
    same.SetPayload(
        kRetryPayload,
        absl::Cord(absl::FormatDuration(ToDuration(retry.retry_delay()))));
  }
  return WithReason(same, DetailIn<google::rpc::ErrorInfo>(details).reason());
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
