#include "pando/operator.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/status_macros.h"
#include "clients/cpp/src/convert.h"
#include "clients/cpp/src/endpoint.h"
#include "clients/cpp/src/operator_calls.h"
#include "clients/cpp/src/operator_convert.h"

namespace pando {
inline namespace client {
namespace {

absl::StatusOr<FlushResult> SendFlush(const OperatorCalls& calls,
                                      const v1::FlushRequest& request) {
  ASSIGN_OR_RETURN(const v1::FlushResponse response, calls.Ask(request));
  return FlushResult{.evicted_pages = response.evicted_pages(),
                     .protected_pages = response.protected_pages()};
}

}  // namespace

Operator::Operator(std::shared_ptr<const Endpoint> endpoint)
    : calls_(std::make_unique<OperatorCalls>(std::move(endpoint))) {}

Operator::~Operator() = default;

absl::StatusOr<std::unique_ptr<Operator>> Operator::Make(
    OperatorOptions options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Endpoint> endpoint,
                   Endpoint::Make({.address = std::move(options.address),
                                   .tls = std::move(options.tls),
                                   .token = std::move(options.token),
                                   .timeout = options.timeout}));
  return std::unique_ptr<Operator>(new Operator(std::move(endpoint)));
}

absl::StatusOr<Stats> Operator::GetStats() {
  ASSIGN_OR_RETURN(const v1::GetStatsResponse response,
                   calls_->Ask(v1::GetStatsRequest()));
  return FromProto(response);
}

absl::StatusOr<FlushResult> Operator::Flush() {
  return SendFlush(*calls_, v1::FlushRequest());
}

absl::StatusOr<FlushResult> Operator::Flush(const Namespace& ns) {
  v1::FlushRequest request;
  ToProto(ns, request.mutable_namespace_());
  return SendFlush(*calls_, request);
}

absl::StatusOr<FlushResult> Operator::FlushNumber(uint64_t namespace_number) {
  v1::FlushRequest request;
  request.set_namespace_number(namespace_number);
  return SendFlush(*calls_, request);
}

absl::StatusOr<std::string> Operator::SetEvictionPolicy(
    const std::string& policy) {
  v1::SetEvictionPolicyRequest request;
  request.set_policy(policy);
  ASSIGN_OR_RETURN(const v1::SetEvictionPolicyResponse response,
                   calls_->Ask(request));
  return response.previous();
}

absl::StatusOr<Listing<NamespaceInfo>> Operator::ListNamespaces(
    uint32_t limit) {
  v1::ListNamespacesRequest request;
  request.set_limit(limit);
  ASSIGN_OR_RETURN(const v1::ListNamespacesResponse response,
                   calls_->Ask(request));
  return ListingOf<NamespaceInfo>(response.namespaces(), response.total());
}

absl::StatusOr<Listing<SessionInfo>> Operator::ListSessions(uint32_t limit) {
  v1::ListSessionsRequest request;
  request.set_limit(limit);
  ASSIGN_OR_RETURN(const v1::ListSessionsResponse response,
                   calls_->Ask(request));
  return ListingOf<SessionInfo>(response.sessions(), response.total());
}

absl::StatusOr<Listing<LockInfo>> Operator::ListLocks(uint32_t limit,
                                                      uint32_t session_number) {
  v1::ListLocksRequest request;
  request.set_limit(limit);
  request.set_session_number(session_number);
  ASSIGN_OR_RETURN(const v1::ListLocksResponse response, calls_->Ask(request));
  return ListingOf<LockInfo>(response.locks(), response.total());
}

absl::StatusOr<uint32_t> Operator::ReleaseLocks(uint32_t session_number) {
  v1::ReleaseLocksRequest request;
  request.set_session_number(session_number);
  ASSIGN_OR_RETURN(const v1::ReleaseLocksResponse response,
                   calls_->Ask(request));
  return response.released_locks();
}

absl::StatusOr<Listing<QuarantineInfo>> Operator::ListQuarantine(
    uint32_t limit) {
  v1::ListQuarantineRequest request;
  request.set_limit(limit);
  ASSIGN_OR_RETURN(const v1::ListQuarantineResponse response,
                   calls_->Ask(request));
  return ListingOf<QuarantineInfo>(response.sessions(), response.total());
}

absl::StatusOr<uint32_t> Operator::FreeQuarantine(uint32_t session_number) {
  v1::FreeQuarantineRequest request;
  request.set_session_number(session_number);
  ASSIGN_OR_RETURN(const v1::FreeQuarantineResponse response,
                   calls_->Ask(request));
  return response.freed_pages();
}

absl::StatusOr<Explanation> Operator::ExplainMatch(
    std::span<const Token> tokens, const Namespace& ns) {
  v1::ExplainMatchRequest request;
  if (IsSet(ns)) ToProto(ns, request.mutable_namespace_());
  Fill(tokens, request.mutable_tokens());
  ASSIGN_OR_RETURN(const v1::ExplainMatchResponse response,
                   calls_->Ask(request));
  return FromProto(response);
}

absl::StatusOr<Listing<KindInfo>> Operator::ListKinds(uint32_t limit) {
  v1::ListKindsRequest request;
  request.set_limit(limit);
  ASSIGN_OR_RETURN(const v1::ListKindsResponse response, calls_->Ask(request));
  return ListingOf<KindInfo>(response.kinds(), response.total());
}

absl::StatusOr<BlockExplanation> Operator::ExplainBlock(uint32_t kind_number,
                                                        std::string_view key) {
  v1::ExplainBlockRequest request;
  request.set_kind_number(kind_number);
  request.set_key(std::string(key));
  ASSIGN_OR_RETURN(const v1::ExplainBlockResponse response,
                   calls_->Ask(request));
  return FromProto(response);
}

absl::StatusOr<TreeDump> Operator::DumpTree(uint32_t limit,
                                            uint64_t namespace_number) {
  v1::DumpTreeRequest request;
  request.set_limit(limit);
  request.set_namespace_number(namespace_number);
  ASSIGN_OR_RETURN(const v1::DumpTreeResponse response, calls_->Ask(request));
  return TreeDump{.nodes = AllFromProto<TreeNode>(response.nodes()),
                  .omitted = response.omitted()};
}

absl::Status Operator::Drain(bool exit) {
  v1::DrainRequest request;
  request.set_exit(exit);
  return calls_->Ask(request).status();
}

absl::Status Operator::Restart() {
  return calls_->Ask(v1::RestartRequest()).status();
}

absl::StatusOr<std::vector<std::string>> Operator::CheckInvariants() {
  ASSIGN_OR_RETURN(const v1::CheckInvariantsResponse response,
                   calls_->Ask(v1::CheckInvariantsRequest()));
  return std::vector<std::string>(response.violations().begin(),
                                  response.violations().end());
}

}  // namespace client
}  // namespace pando
