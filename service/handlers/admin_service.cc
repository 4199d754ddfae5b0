#include "service/handlers/admin_service.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/errors.h"
#include "core/eviction_policy.h"
#include "service/handlers/admin_wire.h"
#include "service/handlers/wire.h"
#include "service/logging/log.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr uint32_t kListed = 1'000;
constexpr uint32_t kDumped = 10'000;
constexpr uint32_t kMaxListed = 100'000;

// Of a list: what was asked for, in bounds.
uint32_t LimitOf(uint32_t asked, uint32_t standard) {
  return asked == 0 ? standard : std::min(asked, kMaxListed);
}

}  // namespace

void AdminService::Register(RpcServer& server, RpcMetrics& metrics) {
  const auto of = [&metrics](const char* method, const char* type = "unary") {
    return metrics.ForMethod(v1::Admin::service_full_name(), method, type);
  };
  server.AddService(&grpc_);
  AddWaitingMethod<v1::GetStatsRequest, v1::GetStatsResponse>(
      server, grpc_.Unary<v1::GetStatsResponse>("GetStats"),
      [this](const auto& in, auto& out, const WaitingCall& call) {
        absl::Status status = GetStats(in, out);
        // Each is some tenant's.
        if (!call.spans_namespaces()) out.clear_quota_classes();
        return status;
      },
      of("GetStats"), Waiting::kNever);
  AddUnaryMethod<v1::FlushRequest, v1::FlushResponse>(
      server, grpc_.Unary<v1::FlushResponse>("Flush"),
      [this](const auto& in, auto& out) { return Flush(in, out); },
      of("Flush"));
  AddUnaryMethod<v1::SetEvictionPolicyRequest, v1::SetEvictionPolicyResponse>(
      server, grpc_.Unary<v1::SetEvictionPolicyResponse>("SetEvictionPolicy"),
      [this](const auto& in, auto& out) { return SetEvictionPolicy(in, out); },
      of("SetEvictionPolicy"));
  AddUnaryMethod<v1::ListNamespacesRequest, v1::ListNamespacesResponse>(
      server, grpc_.Unary<v1::ListNamespacesResponse>("ListNamespaces"),
      [this](const auto& in, auto& out) { return ListNamespaces(in, out); },
      of("ListNamespaces"));
  AddUnaryMethod<v1::ListSessionsRequest, v1::ListSessionsResponse>(
      server, grpc_.Unary<v1::ListSessionsResponse>("ListSessions"),
      [this](const auto& in, auto& out) { return ListSessions(in, out); },
      of("ListSessions"));
  AddUnaryMethod<v1::ListLocksRequest, v1::ListLocksResponse>(
      server, grpc_.Unary<v1::ListLocksResponse>("ListLocks"),
      [this](const auto& in, auto& out) { return ListLocks(in, out); },
      of("ListLocks"));
  AddUnaryMethod<v1::ReleaseLocksRequest, v1::ReleaseLocksResponse>(
      server, grpc_.Unary<v1::ReleaseLocksResponse>("ReleaseLocks"),
      [this](const auto& in, auto& out) { return ReleaseLocks(in, out); },
      of("ReleaseLocks"));
  AddUnaryMethod<v1::ListQuarantineRequest, v1::ListQuarantineResponse>(
      server, grpc_.Unary<v1::ListQuarantineResponse>("ListQuarantine"),
      [this](const auto& in, auto& out) { return ListQuarantine(in, out); },
      of("ListQuarantine"));
  AddUnaryMethod<v1::FreeQuarantineRequest, v1::FreeQuarantineResponse>(
      server, grpc_.Unary<v1::FreeQuarantineResponse>("FreeQuarantine"),
      [this](const auto& in, auto& out) { return FreeQuarantine(in, out); },
      of("FreeQuarantine"));
  AddUnaryMethod<v1::ExplainMatchRequest, v1::ExplainMatchResponse>(
      server, grpc_.Unary<v1::ExplainMatchResponse>("ExplainMatch"),
      [this](const auto& in, auto& out) { return ExplainMatch(in, out); },
      of("ExplainMatch"));
  AddUnaryMethod<v1::CheckInvariantsRequest, v1::CheckInvariantsResponse>(
      server, grpc_.Unary<v1::CheckInvariantsResponse>("CheckInvariants"),
      [this](const auto& in, auto& out) { return CheckInvariants(in, out); },
      of("CheckInvariants"));
  AddUnaryMethod<v1::DrainRequest, v1::DrainResponse>(
      server, grpc_.Unary<v1::DrainResponse>("Drain"),
      [this](const auto& in, auto& out) { return Drain(in, out); },
      of("Drain"));
  dumps_ =
      std::make_unique<StreamMethod<v1::DumpTreeRequest, v1::DumpTreeResponse>>(
          &server, grpc_.ServerStream<v1::DumpTreeResponse>("DumpTree"),
          [this](const auto& in) { return DumpTree(in); },
          of("DumpTree", "server_stream"));
}

absl::Status AdminService::GetStats(const v1::GetStatsRequest&,
                                    v1::GetStatsResponse& response) {
  FillStats(cache_->Stats(), &response);
  response.set_epoch(config_.epoch);
  response.set_version(PANDO_VERSION);
  return absl::OkStatus();
}

absl::Status AdminService::Flush(const v1::FlushRequest& request,
                                 v1::FlushResponse& response) {
  switch (request.which_case()) {
    case v1::FlushRequest::kNamespace: {
      ASSIGN_OR_RETURN(const NamespaceKey ns,
                       NamespaceOf(request.namespace_()));
      FillFlush(cache_->FlushNamespace(ns), &response);
      break;
    }
    case v1::FlushRequest::kNamespaceNumber:
      FillFlush(
          cache_->FlushNamespace(NamespaceNumber(request.namespace_number())),
          &response);
      break;
    case v1::FlushRequest::WHICH_NOT_SET:
      FillFlush(cache_->Flush(), &response);
      break;
  }
  Log(LogLevel::kInfo, "an operator flushed",
      {{"what", request.which_case() == v1::FlushRequest::WHICH_NOT_SET
                    ? "all"
                    : "one namespace"},
       {"namespace", request.namespace_number()},
       {"evicted_pages", response.evicted_pages()}});
  return absl::OkStatus();
}

absl::Status AdminService::SetEvictionPolicy(
    const v1::SetEvictionPolicyRequest& request,
    v1::SetEvictionPolicyResponse& response) {
  const absl::StatusOr<EvictionPolicyKind> policy =
      ParseEvictionPolicy(request.policy());
  if (!policy.ok()) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("policy: ", policy.status().message()));
  }
  response.set_previous(
      std::string(EvictionPolicyName(cache_->SetEvictionPolicy(*policy))));
  Log(LogLevel::kInfo, "an operator changed the eviction policy",
      {{"policy", request.policy()}, {"previous", response.previous()}});
  return absl::OkStatus();
}

absl::Status AdminService::ListNamespaces(
    const v1::ListNamespacesRequest& request,
    v1::ListNamespacesResponse& response) {
  FillNamespaces(cache_->ListNamespaces(LimitOf(request.limit(), kListed)),
                 &response);
  return absl::OkStatus();
}

absl::Status AdminService::ListSessions(const v1::ListSessionsRequest& request,
                                        v1::ListSessionsResponse& response) {
  FillSessions(cache_->ListSessions(LimitOf(request.limit(), kListed)),
               &response);
  return absl::OkStatus();
}

absl::Status AdminService::ListLocks(const v1::ListLocksRequest& request,
                                     v1::ListLocksResponse& response) {
  std::optional<SessionNumber> session;
  if (request.session_number() != 0) {
    session = SessionNumber(request.session_number());
  }
  FillLocks(cache_->ListLocks(LimitOf(request.limit(), kListed), session),
            &response);
  return absl::OkStatus();
}

absl::Status AdminService::ReleaseLocks(const v1::ReleaseLocksRequest& request,
                                        v1::ReleaseLocksResponse& response) {
  ASSIGN_OR_RETURN(
      const uint32_t released,
      cache_->ReleaseLocks(SessionNumber(request.session_number())));
  response.set_released_locks(released);
  Log(LogLevel::kInfo, "an operator released locks",
      {{"session", request.session_number()}, {"locks", released}});
  return absl::OkStatus();
}

absl::Status AdminService::ListQuarantine(
    const v1::ListQuarantineRequest& request,
    v1::ListQuarantineResponse& response) {
  const QuarantineList list =
      cache_->ListQuarantine(LimitOf(request.limit(), kListed));
  for (const QuarantineInfo& lost : list.sessions) {
    v1::QuarantineInfo& out = *response.add_sessions();
    FillQuarantined(lost, &out);
    for (WriterId writer : lost.writers) {
      const std::optional<pid_t> pid = config_.pid_of(writer);
      if (pid.has_value()) out.add_living_pids(*pid);
    }
  }
  response.set_total(list.total);
  return absl::OkStatus();
}

absl::Status AdminService::FreeQuarantine(
    const v1::FreeQuarantineRequest& request,
    v1::FreeQuarantineResponse& response) {
  const absl::StatusOr<uint32_t> freed =
      cache_->FreeQuarantine(SessionNumber(request.session_number()));
  if (!freed.ok()) return freed.status();
  response.set_freed_pages(*freed);
  Log(LogLevel::kWarning, "an operator freed pages in quarantine",
      {{"session", request.session_number()}, {"pages", *freed}});
  return absl::OkStatus();
}

absl::Status AdminService::ExplainMatch(const v1::ExplainMatchRequest& request,
                                        v1::ExplainMatchResponse& response) {
  ASSIGN_OR_RETURN(const NamespaceKey ns, NamespaceOf(request.namespace_()));
  const auto tokens = TokensOf(request.tokens(), config_.max_tokens);
  if (!tokens.ok()) return tokens.status();
  FillExplanation(cache_->ExplainMatch(ns, *tokens), &response);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<AdminService::DumpSource>>
AdminService::DumpTree(const v1::DumpTreeRequest& request) {
  std::optional<NamespaceNumber> ns;
  if (request.namespace_number() != 0) {
    ns = NamespaceNumber(request.namespace_number());
  }
  return tree_dumps_.Begin(
      cache_->DumpTree(LimitOf(request.limit(), kDumped), ns));
}

absl::Status AdminService::CheckInvariants(
    const v1::CheckInvariantsRequest&, v1::CheckInvariantsResponse& response) {
  for (std::string& violation : self_check_->Run()) {
    response.add_violations(std::move(violation));
  }
  return absl::OkStatus();
}

absl::Status AdminService::Drain(const v1::DrainRequest& request,
                                 v1::DrainResponse&) {
  Log(LogLevel::kInfo, "an operator drains", {{"exit", request.exit()}});
  config_.drain(request.exit());
  return absl::OkStatus();
}

}  // namespace pando
