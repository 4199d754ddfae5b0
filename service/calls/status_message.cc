#include "service/calls/status_message.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "core/requests/errors.h"
#include "google/rpc/error_details.pb.h"
#include "service/calls/error_message.h"

namespace pando {
namespace {

// The type URL of a payload that is the RetryInfo itself.
constexpr absl::string_view kRetryInfo =
    "type.googleapis.com/google.rpc.RetryInfo";

// gRPC clients accept only a few kilobytes of trailers, and the message is in
// them twice. A long message, which only repeats what the caller sent, would
// push out the Reason.
constexpr size_t kMaxMessageBytes = 1024;

// Returns the beginning of the message, cut between two characters.
std::string ShortMessageOf(const absl::Status& status) {
  const std::string message = MessageOf(status);
  size_t size = std::min(message.size(), kMaxMessageBytes);
  const auto is_inside = [](char c) { return (c & 0xc0) == 0x80; };
  while (size > 0 && size < message.size() && is_inside(message[size])) --size;
  return message.substr(0, size);
}

}  // namespace

absl::Status WithRetryAfter(absl::Status status, absl::Duration time) {
  google::rpc::RetryInfo info;
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(time);
  info.mutable_retry_delay()->set_seconds(nanoseconds / 1'000'000'000);
  info.mutable_retry_delay()->set_nanos(
      static_cast<int32_t>(nanoseconds % 1'000'000'000));
  status.SetPayload(kRetryInfo, absl::Cord(info.SerializeAsString()));
  return status;
}

google::rpc::Status ToStatusMessage(const absl::Status& status) {
  google::rpc::Status message;
  message.set_code(status.raw_code());
  message.set_message(ShortMessageOf(status));
  const std::optional<Reason> reason = ReasonOf(status);
  if (!reason.has_value()) return message;

  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(*reason)));
  info.set_domain("pando");
  message.add_details()->PackFrom(info);
  if (const auto retry = status.GetPayload(kRetryInfo); retry.has_value()) {
    google::protobuf::Any* detail = message.add_details();
    detail->set_type_url(std::string(kRetryInfo));
    detail->set_value(std::string(*retry));
  }
  return message;
}

}  // namespace pando
