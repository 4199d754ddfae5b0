#ifndef PANDO_CLIENTS_CPP_SRC_OPERATOR_CALLS_H_
#define PANDO_CLIENTS_CPP_SRC_OPERATOR_CALLS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "grpc/health/v1/health.pb.h"
#include "pando/v1/admin.pb.h"
#include "pando/v1/pool.pb.h"
#include "pando/v1/prefix_cache.pb.h"

namespace pando {
inline namespace client {

class Endpoint;

// The calls of operators, with messages of the protocol. Operator is built on
// it, and hides the messages; pandoctl uses it, too, and prints the messages as
// they are.
//
// Owned by the caller. Thread-safe.
class OperatorCalls {
 public:
  explicit OperatorCalls(std::shared_ptr<const Endpoint> endpoint);
  ~OperatorCalls();

  const std::shared_ptr<const Endpoint>& endpoint() const { return endpoint_; }

  absl::StatusOr<v1::GetStatsResponse> Ask(const v1::GetStatsRequest&) const;
  absl::StatusOr<v1::FlushResponse> Ask(const v1::FlushRequest&) const;
  absl::StatusOr<v1::SetEvictionPolicyResponse> Ask(
      const v1::SetEvictionPolicyRequest&) const;
  absl::StatusOr<v1::ListNamespacesResponse> Ask(
      const v1::ListNamespacesRequest&) const;
  absl::StatusOr<v1::ListSessionsResponse> Ask(
      const v1::ListSessionsRequest&) const;
  absl::StatusOr<v1::ListLocksResponse> Ask(const v1::ListLocksRequest&) const;
  absl::StatusOr<v1::ReleaseLocksResponse> Ask(
      const v1::ReleaseLocksRequest&) const;
  absl::StatusOr<v1::ListQuarantineResponse> Ask(
      const v1::ListQuarantineRequest&) const;
  absl::StatusOr<v1::FreeQuarantineResponse> Ask(
      const v1::FreeQuarantineRequest&) const;
  absl::StatusOr<v1::ExplainMatchResponse> Ask(
      const v1::ExplainMatchRequest&) const;
  absl::StatusOr<v1::ListKindsResponse> Ask(const v1::ListKindsRequest&) const;
  absl::StatusOr<v1::ExplainBlockResponse> Ask(
      const v1::ExplainBlockRequest&) const;
  // Joins all messages of the dump into one.
  absl::StatusOr<v1::DumpTreeResponse> Ask(const v1::DumpTreeRequest&) const;
  absl::StatusOr<v1::CheckInvariantsResponse> Ask(
      const v1::CheckInvariantsRequest&) const;
  absl::StatusOr<v1::DrainResponse> Ask(const v1::DrainRequest&) const;
  absl::StatusOr<v1::RestartResponse> Ask(const v1::RestartRequest&) const;
  absl::StatusOr<v1::DescribePoolResponse> Ask(
      const v1::DescribePoolRequest&) const;
  absl::StatusOr<v1::MatchPrefixResponse> Ask(
      const v1::MatchPrefixRequest&) const;
  absl::StatusOr<v1::EvictResponse> Ask(const v1::EvictRequest&) const;
  absl::StatusOr<grpc::health::v1::HealthCheckResponse> Ask(
      const grpc::health::v1::HealthCheckRequest&) const;

 private:
  struct Stubs;

  const std::shared_ptr<const Endpoint> endpoint_;
  const std::unique_ptr<Stubs> stubs_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_OPERATOR_CALLS_H_
