#include "tools/pandoctl/server.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "pando/v1/admin.grpc.pb.h"
#include "pando/v1/events.grpc.pb.h"
#include "pando/v1/pool.grpc.pb.h"
#include "pando/v1/prefix_cache.grpc.pb.h"

namespace pando::ctl {
namespace {

std::string Target(const std::string& address) {
  return absl::StartsWith(address, "/") ? "unix:" + address : address;
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const Access& access) {
  if (access.ca.empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = access.ca,
                               .pem_private_key = access.key,
                               .pem_cert_chain = access.certificate});
}

std::shared_ptr<grpc::Channel> Connect(const std::string& target,
                                       const Access& access,
                                       const std::string& certified_name) {
  grpc::ChannelArguments arguments;
  if (!certified_name.empty()) {
    arguments.SetSslTargetNameOverride(certified_name);
  }
  arguments.SetMaxReceiveMessageSize(-1);
  // http_proxy is for the web, not for a pandod.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(target, CredentialsOf(access), arguments);
}

void ShowToken(grpc::ClientContext& context, const std::string& token) {
  if (token.empty()) return;
  context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
}

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return absl::OkStatus();
    case grpc::StatusCode::UNAVAILABLE:
      return absl::UnavailableError(
          absl::StrCat(address, " cannot be reached: ", status.error_message(),
                       ". Does pandod run there?"));
    case grpc::StatusCode::CANCELLED:  // by pandod, which stops
      return absl::UnavailableError(
          absl::StrCat(address, " ended before it answered"));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::UnavailableError(
          absl::StrCat(address, " has not answered in time"));
    case grpc::StatusCode::INVALID_ARGUMENT:
      return absl::InvalidArgumentError(status.error_message());
    default:
      return absl::UnknownError(status.error_message());
  }
}

}  // namespace

struct Server::Stubs {
  Stubs(const std::string& target, absl::Duration call_timeout,
        const Access& access, const std::string& certified_name)
      : address(target),
        timeout(call_timeout),
        token(access.token),
        channel(Connect(target, access, certified_name)),
        admin(channel),
        events(channel),
        pool(channel),
        prefixes(channel),
        health(channel) {}

  // Makes one unary call of a stub.
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub,
      grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                   Response*),
      const Request& request) {
    grpc::ClientContext context;
    SetDeadline(context, timeout);
    ShowToken(context, token);
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return FromGrpc(status, address);
    return response;
  }

  const std::string address;
  const absl::Duration timeout;
  const std::string token;
  const std::shared_ptr<grpc::Channel> channel;
  v1::Admin::Stub admin;
  v1::Events::Stub events;
  v1::PagePool::Stub pool;
  v1::PrefixCache::Stub prefixes;
  grpc::health::v1::Health::Stub health;
};

Server::Server(const std::string& address, absl::Duration timeout,
               Access access, const std::string& certified_name)
    : address_(Target(address)),
      timeout_(timeout),
      access_(std::move(access)),
      certified_name_(certified_name) {}

Server::~Server() = default;

Server::Stubs& Server::stubs() {
  if (stubs_ == nullptr)
    stubs_ =
        std::make_unique<Stubs>(address_, timeout_, access_, certified_name_);
  return *stubs_;
}

absl::StatusOr<v1::GetStatsResponse> Server::GetStats() {
  return stubs().Call(stubs().admin, &v1::Admin::Stub::GetStats,
                      v1::GetStatsRequest());
}

absl::StatusOr<v1::DescribePoolResponse> Server::DescribePool() {
  return stubs().Call(stubs().pool, &v1::PagePool::Stub::DescribePool,
                      v1::DescribePoolRequest());
}

absl::StatusOr<v1::ListNamespacesResponse> Server::ListNamespaces(
    uint32_t limit) {
  v1::ListNamespacesRequest request;
  request.set_limit(limit);
  return stubs().Call(stubs().admin, &v1::Admin::Stub::ListNamespaces, request);
}

absl::StatusOr<v1::ListSessionsResponse> Server::ListSessions(uint32_t limit) {
  v1::ListSessionsRequest request;
  request.set_limit(limit);
  return stubs().Call(stubs().admin, &v1::Admin::Stub::ListSessions, request);
}

absl::StatusOr<v1::ListLocksResponse> Server::ListLocks(
    const v1::ListLocksRequest& request) {
  return stubs().Call(stubs().admin, &v1::Admin::Stub::ListLocks, request);
}

absl::StatusOr<v1::ReleaseLocksResponse> Server::ReleaseLocks(
    uint32_t session) {
  v1::ReleaseLocksRequest request;
  request.set_session_number(session);
  return stubs().Call(stubs().admin, &v1::Admin::Stub::ReleaseLocks, request);
}

absl::StatusOr<v1::ListQuarantineResponse> Server::ListQuarantine(
    uint32_t limit) {
  v1::ListQuarantineRequest request;
  request.set_limit(limit);
  return stubs().Call(stubs().admin, &v1::Admin::Stub::ListQuarantine, request);
}

absl::StatusOr<v1::FreeQuarantineResponse> Server::FreeQuarantine(
    uint32_t session) {
  v1::FreeQuarantineRequest request;
  request.set_session_number(session);
  return stubs().Call(stubs().admin, &v1::Admin::Stub::FreeQuarantine, request);
}

absl::StatusOr<v1::MatchPrefixResponse> Server::MatchPrefix(
    const v1::MatchPrefixRequest& request) {
  return stubs().Call(stubs().prefixes, &v1::PrefixCache::Stub::MatchPrefix,
                      request);
}

absl::StatusOr<v1::ExplainMatchResponse> Server::ExplainMatch(
    const v1::ExplainMatchRequest& request) {
  return stubs().Call(stubs().admin, &v1::Admin::Stub::ExplainMatch, request);
}

absl::StatusOr<v1::EvictResponse> Server::Evict(uint32_t pages) {
  v1::EvictRequest request;
  request.set_pages(pages);
  return stubs().Call(stubs().prefixes, &v1::PrefixCache::Stub::Evict, request);
}

absl::StatusOr<v1::FlushResponse> Server::Flush(
    const v1::FlushRequest& request) {
  return stubs().Call(stubs().admin, &v1::Admin::Stub::Flush, request);
}

absl::StatusOr<v1::SetEvictionPolicyResponse> Server::SetEvictionPolicy(
    const std::string& policy) {
  v1::SetEvictionPolicyRequest request;
  request.set_policy(policy);
  return stubs().Call(stubs().admin, &v1::Admin::Stub::SetEvictionPolicy,
                      request);
}

absl::StatusOr<v1::CheckInvariantsResponse> Server::CheckInvariants() {
  return stubs().Call(stubs().admin, &v1::Admin::Stub::CheckInvariants,
                      v1::CheckInvariantsRequest());
}

absl::StatusOr<v1::DrainResponse> Server::Drain(bool exit) {
  v1::DrainRequest request;
  request.set_exit(exit);
  return stubs().Call(stubs().admin, &v1::Admin::Stub::Drain, request);
}

absl::StatusOr<v1::DumpTreeResponse> Server::DumpTree(
    const v1::DumpTreeRequest& request) {
  grpc::ClientContext context;
  SetDeadline(context, timeout_);
  ShowToken(context, access_.token);
  const auto stream = stubs().admin.DumpTree(&context, request);
  v1::DumpTreeResponse whole, part;
  while (stream->Read(&part)) whole.MergeFrom(part);
  const grpc::Status status = stream->Finish();
  if (!status.ok()) return FromGrpc(status, address());
  return whole;
}

absl::Status Server::WatchEvents(
    const std::function<bool(const v1::Event&)>& on_event,
    absl::Duration limit) {
  grpc::ClientContext context;
  if (limit < absl::InfiniteDuration()) SetDeadline(context, limit);
  ShowToken(context, access_.token);
  const auto stream = stubs().events.Watch(&context, v1::WatchRequest());
  v1::WatchResponse response;
  while (stream->Read(&response)) {
    for (const v1::Event& event : response.events()) {
      if (on_event(event)) continue;
      context.TryCancel();
      return absl::OkStatus();
    }
  }
  return FromGrpc(stream->Finish(), address());
}

absl::StatusOr<std::string> Server::Health(const std::string& service) {
  using grpc::health::v1::HealthCheckResponse;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  ASSIGN_OR_RETURN(
      const HealthCheckResponse response,
      stubs().Call(stubs().health, &grpc::health::v1::Health::Stub::Check,
                   request));
  return HealthCheckResponse::ServingStatus_Name(response.status());
}

}  // namespace pando::ctl
