#include "service/handlers/data_path_service.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr int kMaxBatch = 256;

// The numbers that name a method on a lane and in a batch are the same.
template <int kField>
constexpr bool HasNumber(lane::Method method) {
  return static_cast<int>(method) == kField;
}
using Batched = v1::BatchedRequest;
static_assert(
    HasNumber<Batched::kMatchPrefixFieldNumber>(lane::Method::kMatchPrefix));
static_assert(HasNumber<Batched::kMatchPrefixesFieldNumber>(
    lane::Method::kMatchPrefixes));
static_assert(HasNumber<Batched::kInsertFieldNumber>(lane::Method::kInsert));
static_assert(HasNumber<Batched::kLockFieldNumber>(lane::Method::kLock));
static_assert(HasNumber<Batched::kUnlockFieldNumber>(lane::Method::kUnlock));
static_assert(HasNumber<Batched::kAllocatePagesFieldNumber>(
    lane::Method::kAllocatePages));
static_assert(
    HasNumber<Batched::kFreePagesFieldNumber>(lane::Method::kFreePages));
static_assert(
    HasNumber<Batched::kGetStatsFieldNumber>(lane::Method::kGetStats));

}  // namespace

void DataPathService::Register(RpcServer& server, RpcMetrics& metrics,
                               const DataPath& data_path) {
  data_path_ = &data_path;
  batch_metrics_.emplace(metrics, data_path);
  const auto of = [&](const char* method) {
    return metrics.ForMethod(v1::DataPath::service_full_name(), method);
  };
  server.AddService(&grpc_);
  AddUnaryMethod<v1::OpenLaneRequest, v1::OpenLaneResponse>(
      server, grpc_.Unary<v1::OpenLaneResponse>("OpenLane"),
      [this](const auto& in, auto& out, const WaitingCall& call) {
        return OpenLane(in, out, call);
      },
      of("OpenLane"));
  AddWaitingMethod<v1::BatchRequest, v1::BatchResponse>(
      server, grpc_.Unary<v1::BatchResponse>("Batch"),
      [this](const auto& in, auto& out, WaitingCall& call) {
        return Batch(in, out, call);
      },
      of("Batch"));
}

absl::Status DataPathService::OpenLane(const v1::OpenLaneRequest& request,
                                       v1::OpenLaneResponse& response,
                                       const WaitingCall& call) {
  const SessionId session(request.session_id());
  RETURN_IF_ERROR(cache_->CheckSession(session));
  if (!has_lanes_) {
    return absl::FailedPreconditionError(
        "this server opens no lanes: lane-bytes is 0");
  }
  const Caller caller = call.caller();
  if (!caller.peer.has_value()) {
    return absl::FailedPreconditionError(
        "a lane is opened over the Unix socket, not over TCP");
  }
  ASSIGN_OR_RETURN(
      const AttachToken token,
      memory_->IssueToken(
          {.session = session,
           .what = AttachGrant::What::kLane,
           .authorization = std::string(caller.authorization.value_or(""))},
          caller.peer));
  response.set_token(token.data(), token.size());
  response.set_memory_socket(memory_->path());
  return absl::OkStatus();
}

std::optional<absl::Status> DataPathService::Batch(
    const v1::BatchRequest& request, v1::BatchResponse& response,
    WaitingCall& call) {
  if (request.requests_size() > kMaxBatch) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("requests has ", request.requests_size(),
                                  " entries; the limit is ", kMaxBatch));
  }
  return stepped_->Answer<BatchedCalls>(
      call,
      [&] {
        return std::make_unique<BatchedCalls>(
            policy_, *data_path_, *batch_metrics_, request, response, call);
      },
      [](BatchedCalls&) { return absl::OkStatus(); });
}

}  // namespace pando
