#include "service/handlers/data_path_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr int kMaxBatch = 256;

}  // namespace

void DataPathService::Register(RpcServer& server, RpcMetrics& metrics,
                               const DataPath& data_path) {
  data_path_ = &data_path;
  batch_metrics_.emplace(metrics, data_path);
  server.AddService(&grpc_);
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::DataPath>(this, &DataPathService::OpenLane));
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::DataPath>(this, &DataPathService::Batch));
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
