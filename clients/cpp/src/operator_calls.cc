#include "clients/cpp/src/operator_calls.h"

#include <utility>

#include "base/status_macros.h"
#include "clients/cpp/src/endpoint.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "pando/v1/admin.grpc.pb.h"
#include "pando/v1/pool.grpc.pb.h"
#include "pando/v1/prefix_cache.grpc.pb.h"

namespace pando {
inline namespace client {

struct OperatorCalls::Stubs {
  explicit Stubs(const Endpoint& of)
      : endpoint(of),
        admin(of.channel()),
        pool(of.channel()),
        prefixes(of.channel()),
        health(of.channel()) {}

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(
      Stub& stub, Endpoint::Method<Stub, Request, Response> method,
      const Request& request) {
    Response response;
    RETURN_IF_ERROR(endpoint.Call(stub, method, request, &response,
                                  endpoint.CallDeadline()));
    return response;
  }

  const Endpoint& endpoint;
  v1::Admin::Stub admin;
  v1::PagePool::Stub pool;
  v1::PrefixCache::Stub prefixes;
  grpc::health::v1::Health::Stub health;
};

OperatorCalls::OperatorCalls(std::shared_ptr<const Endpoint> endpoint)
    : endpoint_(std::move(endpoint)),
      stubs_(std::make_unique<Stubs>(*endpoint_)) {}

OperatorCalls::~OperatorCalls() = default;

absl::StatusOr<v1::GetStatsResponse> OperatorCalls::Ask(
    const v1::GetStatsRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::GetStats, request);
}

absl::StatusOr<v1::FlushResponse> OperatorCalls::Ask(
    const v1::FlushRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::Flush, request);
}

absl::StatusOr<v1::SetEvictionPolicyResponse> OperatorCalls::Ask(
    const v1::SetEvictionPolicyRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::SetEvictionPolicy,
                      request);
}

absl::StatusOr<v1::ListNamespacesResponse> OperatorCalls::Ask(
    const v1::ListNamespacesRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ListNamespaces, request);
}

absl::StatusOr<v1::ListSessionsResponse> OperatorCalls::Ask(
    const v1::ListSessionsRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ListSessions, request);
}

absl::StatusOr<v1::ListLocksResponse> OperatorCalls::Ask(
    const v1::ListLocksRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ListLocks, request);
}

absl::StatusOr<v1::ReleaseLocksResponse> OperatorCalls::Ask(
    const v1::ReleaseLocksRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ReleaseLocks, request);
}

absl::StatusOr<v1::ListQuarantineResponse> OperatorCalls::Ask(
    const v1::ListQuarantineRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ListQuarantine, request);
}

absl::StatusOr<v1::FreeQuarantineResponse> OperatorCalls::Ask(
    const v1::FreeQuarantineRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::FreeQuarantine, request);
}

absl::StatusOr<v1::ExplainMatchResponse> OperatorCalls::Ask(
    const v1::ExplainMatchRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ExplainMatch, request);
}

absl::StatusOr<v1::ListKindsResponse> OperatorCalls::Ask(
    const v1::ListKindsRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ListKinds, request);
}

absl::StatusOr<v1::ExplainBlockResponse> OperatorCalls::Ask(
    const v1::ExplainBlockRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::ExplainBlock, request);
}

absl::StatusOr<v1::DumpTreeResponse> OperatorCalls::Ask(
    const v1::DumpTreeRequest& request) const {
  grpc::ClientContext context;
  endpoint_->Prepare(context, endpoint_->CallDeadline());
  const auto stream = stubs_->admin.DumpTree(&context, request);
  v1::DumpTreeResponse whole, part;
  while (stream->Read(&part)) whole.MergeFrom(part);
  RETURN_IF_ERROR(FromGrpc(stream->Finish()));
  return whole;
}

absl::StatusOr<v1::CheckInvariantsResponse> OperatorCalls::Ask(
    const v1::CheckInvariantsRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::CheckInvariants,
                      request);
}

absl::StatusOr<v1::RestartResponse> OperatorCalls::Ask(
    const v1::RestartRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::Restart, request);
}

absl::StatusOr<v1::DrainResponse> OperatorCalls::Ask(
    const v1::DrainRequest& request) const {
  return stubs_->Call(stubs_->admin, &v1::Admin::Stub::Drain, request);
}

absl::StatusOr<v1::DescribePoolResponse> OperatorCalls::Ask(
    const v1::DescribePoolRequest& request) const {
  return stubs_->Call(stubs_->pool, &v1::PagePool::Stub::DescribePool, request);
}

absl::StatusOr<v1::MatchPrefixResponse> OperatorCalls::Ask(
    const v1::MatchPrefixRequest& request) const {
  return stubs_->Call(stubs_->prefixes, &v1::PrefixCache::Stub::MatchPrefix,
                      request);
}

absl::StatusOr<v1::EvictResponse> OperatorCalls::Ask(
    const v1::EvictRequest& request) const {
  return stubs_->Call(stubs_->prefixes, &v1::PrefixCache::Stub::Evict, request);
}

absl::StatusOr<grpc::health::v1::HealthCheckResponse> OperatorCalls::Ask(
    const grpc::health::v1::HealthCheckRequest& request) const {
  return stubs_->Call(stubs_->health, &grpc::health::v1::Health::Stub::Check,
                      request);
}

}  // namespace client
}  // namespace pando
