#include "service/admin_service.h"

#include "service/rpc/unary_call.h"
#include "service/wire.h"

namespace pando {

void AdminService::Register(RpcServer& server, RpcMetrics& metrics) {
  const auto of = [&metrics](const char* method) {
    return metrics.ForMethod(v1::Admin::service_full_name(), method);
  };
  server.AddService(&grpc_);
  AddUnaryMethod<v1::GetStatsRequest, v1::GetStatsResponse>(
      server, [this](auto... call) { grpc_.RequestGetStats(call...); },
      [this](const auto& in, auto& out) { return GetStats(in, out); },
      of("GetStats"));
  AddUnaryMethod<v1::FlushRequest, v1::FlushResponse>(
      server, [this](auto... call) { grpc_.RequestFlush(call...); },
      [this](const auto& in, auto& out) { return Flush(in, out); },
      of("Flush"));
  AddUnaryMethod<v1::CheckInvariantsRequest, v1::CheckInvariantsResponse>(
      server, [this](auto... call) { grpc_.RequestCheckInvariants(call...); },
      [this](const auto& in, auto& out) { return CheckInvariants(in, out); },
      of("CheckInvariants"));
}

absl::Status AdminService::GetStats(const v1::GetStatsRequest&,
                                    v1::GetStatsResponse& response) {
  FillStats(cache_->Stats(), &response);
  response.set_epoch(epoch_);
  return absl::OkStatus();
}

absl::Status AdminService::Flush(const v1::FlushRequest&,
                                 v1::FlushResponse& response) {
  const FlushResult result = cache_->Flush();
  response.set_evicted_pages(result.evicted_pages);
  response.set_protected_pages(result.protected_pages);
  return absl::OkStatus();
}

absl::Status AdminService::CheckInvariants(
    const v1::CheckInvariantsRequest&, v1::CheckInvariantsResponse& response) {
  for (std::string& violation : self_check_->Run()) {
    response.add_violations(std::move(violation));
  }
  return absl::OkStatus();
}

}  // namespace pando
