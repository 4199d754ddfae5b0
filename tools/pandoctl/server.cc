#include "tools/pandoctl/server.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "clients/cpp/src/endpoint.h"
#include "clients/cpp/src/refused_user.h"
#include "clients/cpp/src/watch_stream.h"

namespace pando::ctl {
namespace {

std::string Target(const std::string& address) {
  return absl::StartsWith(address, "/") ? "unix:" + address : address;
}

Access WithName(Access access, const std::string& certified_name) {
  if (access.tls.has_value()) access.tls->server_name = certified_name;
  return access;
}

}  // namespace

Server::Server(const std::string& address, absl::Duration timeout,
               Access access, const std::string& certified_name)
    : address_(Target(address)),
      timeout_(timeout),
      access_(WithName(std::move(access), certified_name)) {}

Server::~Server() = default;

absl::StatusOr<const OperatorCalls*> Server::Calls() {
  if (calls_ == nullptr) {
    ASSIGN_OR_RETURN(std::shared_ptr<const Endpoint> endpoint,
                     Endpoint::Make({.address = address_,
                                     .tls = access_.tls,
                                     .token = access_.token,
                                     .timeout = timeout_}));
    calls_ = std::make_unique<const OperatorCalls>(std::move(endpoint));
  }
  return calls_.get();
}

absl::Status Server::Explained(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable: {
      const std::string refused = WhyUserIsRefused(address_);
      if (!refused.empty()) return absl::UnavailableError(refused);
      return absl::UnavailableError(
          absl::StrCat(address_, " cannot be reached: ", status.message(),
                       ". Does pandod run there?"));
    }
    case absl::StatusCode::kCancelled:  // pandod stops, and cancelled the call
      return absl::UnavailableError(
          absl::StrCat(address_, " ended before it answered"));
    case absl::StatusCode::kDeadlineExceeded:
      return absl::UnavailableError(
          absl::StrCat(address_, " has not answered in time"));
    case absl::StatusCode::kInvalidArgument:
      return absl::InvalidArgumentError(status.message());
    default:
      return absl::UnknownError(status.message());
  }
}

absl::Status Server::WatchEvents(
    const std::function<bool(const v1::Event&)>& on_event,
    absl::Duration limit) {
  ASSIGN_OR_RETURN(const OperatorCalls* const calls, Calls());
  WatchStream stream(*calls->endpoint(), v1::WatchRequest(),
                     absl::Now() + limit);
  v1::WatchResponse response;
  while (true) {
    const absl::Status read = stream.Read(&response);
    if (!read.ok()) return Explained(read);
    for (const v1::Event& event : response.events()) {
      if (!on_event(event)) return absl::OkStatus();
    }
  }
}

absl::StatusOr<std::string> Server::Health(const std::string& service) {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  ASSIGN_OR_RETURN(const HealthCheckResponse response, Ask(request));
  return HealthCheckResponse::ServingStatus_Name(response.status());
}

}  // namespace pando::ctl
