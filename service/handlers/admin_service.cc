#include "service/handlers/admin_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "core/block_calls/block_reports.h"
#include "core/eviction/eviction_policy.h"
#include "core/operators/eviction_work.h"
#include "core/operators/listings.h"
#include "core/operators/policy_change.h"
#include "core/operators/tree_dump.h"
#include "core/requests/errors.h"
#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "service/handlers/admin_wire.h"
#include "service/handlers/block_wire.h"
#include "service/handlers/serve_data_path.h"
#include "service/handlers/tier_wire.h"
#include "service/handlers/wire.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr uint32_t kListed = 1'000;
constexpr uint32_t kDumped = 10'000;
// The most entries of one answer. Writing more would keep other calls waiting.
constexpr uint32_t kMaxListed = 10'000;
constexpr uint32_t kMaxDumped = 100'000;
// The pause between two steps of ExplainMatchBlocking, in which other threads
// get the mutex.
constexpr absl::Duration kPause = absl::Microseconds(50);

// How many entries are listed when `asked` are asked for; 0 asks for the
// default.
uint32_t LimitOf(uint32_t asked, uint32_t standard, uint32_t most) {
  return asked == 0 ? standard : std::min(asked, most);
}

// Takes steps of the self-check until a check that began after this work has
// ended.
class CheckWork final : public SteppedCalls::Work {
 public:
  explicit CheckWork(SelfCheck* check)
      : check_(check), awaited_(check->begun() + 1) {}

  SteppedCalls::Progress Step() override {
    check_->Step();
    return check_->ended() >= awaited_ ? SteppedCalls::Progress::kDone
                                       : SteppedCalls::Progress::kMore;
  }

 private:
  SelfCheck* const check_;
  const uint64_t awaited_;
};

// A flush during which the tiers neither store nor load pages.
class PausingFlush final : public FlushWork {
 public:
  PausingFlush(FlushWork work, std::shared_ptr<const void> pause)
      : FlushWork(std::move(work)), pause_(std::move(pause)) {}

 private:
  std::shared_ptr<const void> pause_;
};

// Returns the flush that the request asks for. `ns` is the namespace that the
// request names, if it names one.
FlushWork WorkOf(const v1::FlushRequest& request, const NamespaceKey& ns) {
  switch (request.which_case()) {
    case v1::FlushRequest::kNamespace:
      return FlushWork(ns);
    case v1::FlushRequest::kNamespaceNumber:
      return FlushWork(NamespaceNumber(request.namespace_number()));
    case v1::FlushRequest::WHICH_NOT_SET:
      break;
  }
  return FlushWork();
}

}  // namespace

void AdminService::AddMethodsTo(DataPath& data_path) {
  AddDataPathMethods<v1::Admin>(this, data_path);
}

void AdminService::Register(RpcServer& server, RpcMetrics& metrics,
                            const DataPath& data_path) {
  server.AddService(&grpc_);
  ServeDataPath(server, grpc_, metrics, data_path);
  const auto serve = [&](auto handle) {
    ServeMethod(server, grpc_, metrics, MakeMethod<v1::Admin>(this, handle));
  };
  serve(&AdminService::Flush);
  serve(&AdminService::SetEvictionPolicy);
  serve(&AdminService::ListNamespaces);
  serve(&AdminService::ListSessions);
  serve(&AdminService::ListLocks);
  serve(&AdminService::ReleaseLocks);
  serve(&AdminService::ListQuarantine);
  serve(&AdminService::FreeQuarantine);
  serve(&AdminService::ExplainMatch);
  serve(&AdminService::ListKinds);
  serve(&AdminService::ExplainBlock);
  serve(&AdminService::CheckInvariants);
  serve(&AdminService::Drain);
  serve(&AdminService::Restart);
  dumps_ =
      std::make_unique<StreamMethod<v1::DumpTreeRequest, v1::DumpTreeResponse>>(
          &server, grpc_.Method("DumpTree"),
          [this](const auto& in) { return DumpTree(in); },
          metrics.ForMethod(v1::Admin::service_full_name(), "DumpTree",
                            "server_stream"));
}

std::optional<absl::Status> AdminService::GetStats(
    const v1::GetStatsRequest&, v1::GetStatsResponse& response,
    WaitingCall& call) {
  if (blocks_ == nullptr) return AnswerStats(call, response);
  return stepped_->AnswerFromCache<BlockCensus>(
      call, [] { return BlockCensus(); },
      [&](BlockCensus& done) {
        FillBlockFigures(done.Take(), response.mutable_blocks());
        return AnswerStats(call, response);
      });
}

absl::Status AdminService::AnswerStats(const WaitingCall& call,
                                       v1::GetStatsResponse& response) {
  FillStats(cache_->Stats(), &response);
  if (tiers_ != nullptr) FillTiers(*tiers_, &response);
  // Each quota belongs to some tenant.
  if (!call.spans_namespaces()) {
    response.clear_quota_classes();
    if (response.has_blocks()) response.mutable_blocks()->clear_quotas();
  }
  response.set_epoch(config_.epoch);
  response.set_version(PANDO_VERSION);
  response.set_console_url(console_url_);
  return absl::OkStatus();
}

std::optional<absl::Status> AdminService::Flush(const v1::FlushRequest& request,
                                                v1::FlushResponse& response,
                                                WaitingCall& call) {
  ASSIGN_OR_RETURN(const NamespaceKey ns, NamespaceOf(request.namespace_()));
  return stepped_->AnswerFromCache<PausingFlush>(
      call,
      [&] {
        return PausingFlush(WorkOf(request, ns),
                            loader_ == nullptr ? nullptr : loader_->Pause());
      },
      [&](PausingFlush& done) {
        FillFlush(done.result(), &response);
        ForgetFlushed(done);
        Log(LogLevel::kInfo, "an operator flushed",
            {{"what", done.is_all() ? "all" : "one namespace"},
             {"namespace", request.namespace_number()},
             {"evicted_pages", response.evicted_pages()}});
        return absl::OkStatus();
      });
}

void AdminService::ForgetFlushed(const FlushWork& done) {
  if (loader_ == nullptr) return;
  if (done.is_all()) {
    loader_->ForgetAll();
  } else if (done.ns().has_value()) {
    loader_->Forget(*done.ns());
  }
}

std::optional<absl::Status> AdminService::SetEvictionPolicy(
    const v1::SetEvictionPolicyRequest& request,
    v1::SetEvictionPolicyResponse& response, WaitingCall& call) {
  const absl::StatusOr<EvictionPolicyKind> policy =
      ParseEvictionPolicy(request.policy());
  if (!policy.ok()) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("policy: ", policy.status().message()));
  }
  return stepped_->AnswerFromCache<PolicyChange>(
      call, [&] { return PolicyChange(*policy); },
      [&](PolicyChange& done) {
        response.set_previous(std::string(EvictionPolicyName(done.previous())));
        Log(LogLevel::kInfo, "an operator changed the eviction policy",
            {{"policy", request.policy()}, {"previous", response.previous()}});
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::ListNamespaces(
    const v1::ListNamespacesRequest& request,
    v1::ListNamespacesResponse& response, WaitingCall& call) {
  return stepped_->AnswerFromCache<NamespaceListing>(
      call,
      [&] {
        return NamespaceListing(LimitOf(request.limit(), kListed, kMaxListed));
      },
      [&](NamespaceListing& done) {
        FillNamespaces(done.Take(), &response);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::ListSessions(
    const v1::ListSessionsRequest& request, v1::ListSessionsResponse& response,
    WaitingCall& call) {
  return stepped_->AnswerFromCache<SessionListing>(
      call,
      [&] {
        return SessionListing(LimitOf(request.limit(), kListed, kMaxListed));
      },
      [&](SessionListing& done) {
        FillSessions(done.Take(), &response);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::ListLocks(
    const v1::ListLocksRequest& request, v1::ListLocksResponse& response,
    WaitingCall& call) {
  return stepped_->AnswerFromCache<LockListing>(
      call,
      [&] {
        std::optional<SessionNumber> session;
        if (request.session_number() != 0) {
          session = SessionNumber(request.session_number());
        }
        return LockListing(LimitOf(request.limit(), kListed, kMaxListed),
                           session);
      },
      [&](LockListing& done) {
        FillLocks(done.Take(), &response);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::ReleaseLocks(
    const v1::ReleaseLocksRequest& request, v1::ReleaseLocksResponse& response,
    WaitingCall& call) {
  return stepped_->AnswerFromCache<LockRelease>(
      call,
      [&] { return LockRelease(SessionNumber(request.session_number())); },
      [&](LockRelease& done) -> absl::Status {
        ASSIGN_OR_RETURN(const uint32_t released, done.result());
        response.set_released_locks(released);
        Log(LogLevel::kInfo, "an operator released locks",
            {{"session", request.session_number()}, {"locks", released}});
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::ExplainMatch(
    const v1::ExplainMatchRequest& request, v1::ExplainMatchResponse& response,
    WaitingCall& call) {
  ASSIGN_OR_RETURN(const NamespaceKey ns, NamespaceOf(request.namespace_()));
  ASSIGN_OR_RETURN(const std::span<const Token> tokens,
                   TokensOf(request.tokens(), config_.max_tokens));
  std::optional<LookedUp> looked_up;
  if (loader_ != nullptr && !stepped_->IsUnderWay(call)) {
    looked_up = loader_->End(call);
    if (!looked_up.has_value() && !call.is_cancelled() &&
        loader_
            ->Begin(call, SessionId(), {.ns = ns, .tokens = tokens},
                    LoadAction::kTell, MonotonicNow() + kLookupTime)
            .value_or(false)) {
      return std::nullopt;
    }
  }
  return stepped_->AnswerFromCache<TieredExplanation>(
      call,
      [&] {
        return TieredExplanation(
            ns, tokens,
            looked_up.has_value() ? looked_up->kept_of_first() : Kept());
      },
      [&](TieredExplanation& done) {
        Answer(done, response);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::ListQuarantine(
    const v1::ListQuarantineRequest& request,
    v1::ListQuarantineResponse& response, WaitingCall& call) {
  return stepped_->AnswerFromCache<QuarantineListing>(
      call,
      [&] {
        return QuarantineListing(LimitOf(request.limit(), kListed, kMaxListed));
      },
      [&](QuarantineListing& done) {
        FillQuarantine(done.Take(), config_.pid_of, &response);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::FreeQuarantine(
    const v1::FreeQuarantineRequest& request,
    v1::FreeQuarantineResponse& response, WaitingCall& call) {
  return stepped_->AnswerFromCache<QuarantineRelease>(
      call,
      [&] {
        return QuarantineRelease(SessionNumber(request.session_number()));
      },
      [&](QuarantineRelease& done) -> absl::Status {
        ASSIGN_OR_RETURN(const uint32_t freed, done.result());
        response.set_freed_pages(freed);
        Log(LogLevel::kWarning, "an operator freed pages in quarantine",
            {{"session", request.session_number()}, {"pages", freed}});
        return absl::OkStatus();
      });
}

absl::Status AdminService::ExplainMatchBlocking(
    const v1::ExplainMatchRequest& request,
    v1::ExplainMatchResponse& response) {
  ASSIGN_OR_RETURN(const NamespaceKey ns, NamespaceOf(request.namespace_()));
  ASSIGN_OR_RETURN(const std::span<const Token> tokens,
                   TokensOf(request.tokens(), config_.max_tokens));
  TieredExplanation explanation(
      ns, tokens,
      loader_ == nullptr ? Kept()
                         : loader_->FindKept({.ns = ns, .tokens = tokens}));
  while (!cache_->Step(explanation)) absl::SleepFor(kPause);
  Answer(explanation, response);
  return absl::OkStatus();
}

void AdminService::Answer(TieredExplanation& done,
                          v1::ExplainMatchResponse& response) const {
  const MatchExplanation result = done.Take();
  FillExplanation(result, &response);
  const Kept kept = done.kept();
  FillLoadable(kept, result.matched_tokens, response);
  if (response.loadable_tokens() == 0 || result.is_pending) return;
  response.set_not_loaded(NotLoadedOnWire(
      loader_->FindObstacle(result.matched_tokens, kept.tokens)));
}

std::optional<absl::Status> AdminService::ListKinds(
    const v1::ListKindsRequest& request, v1::ListKindsResponse& response,
    WaitingCall& call) {
  RETURN_IF_ERROR(CheckBlockMemory());
  return stepped_->AnswerFromCache<BlockCensus>(
      call, [] { return BlockCensus(); },
      [&](BlockCensus& done) {
        FillKinds(done.Take(), LimitOf(request.limit(), kListed, kMaxListed),
                  &response);
        return absl::OkStatus();
      });
}

std::optional<absl::Status> AdminService::ExplainBlock(
    const v1::ExplainBlockRequest& request, v1::ExplainBlockResponse& response,
    WaitingCall& call) {
  RETURN_IF_ERROR(CheckBlockMemory());
  return stepped_->AnswerFromCache<BlockInquiry>(
      call,
      [&] {
        return BlockInquiry(KindNumber(request.kind_number()), request.key());
      },
      [&](BlockInquiry& done) -> absl::Status {
        ASSIGN_OR_RETURN(const BlockExplanation explanation, done.Take());
        FillBlockExplanation(explanation, &response);
        response.set_is_kept(
            block_tier_ != nullptr &&
            block_tier_->Has(KindNumber(request.kind_number()), request.key()));
        return absl::OkStatus();
      });
}

absl::Status AdminService::CheckBlockMemory() const {
  if (blocks_ != nullptr) return absl::OkStatus();
  return MakeError(Reason::kNoBlockMemory, "there is no block memory here");
}

absl::StatusOr<std::unique_ptr<AdminService::DumpSource>>
AdminService::DumpTree(const v1::DumpTreeRequest& request) {
  std::optional<NamespaceNumber> ns;
  if (request.namespace_number() != 0) {
    ns = NamespaceNumber(request.namespace_number());
  }
  return tree_dumps_.Begin(
      TreeDumpWork(LimitOf(request.limit(), kDumped, kMaxDumped), ns));
}

std::optional<absl::Status> AdminService::CheckInvariants(
    const v1::CheckInvariantsRequest&, v1::CheckInvariantsResponse& response,
    WaitingCall& call) {
  return stepped_->Answer<CheckWork>(
      call, [&] { return std::make_unique<CheckWork>(self_check_); },
      [&](CheckWork&) {
        for (const std::string& violation : self_check_->last_violations()) {
          response.add_violations(violation);
        }
        return absl::OkStatus();
      });
}

absl::Status AdminService::Drain(const v1::DrainRequest& request,
                                 v1::DrainResponse&) {
  Log(LogLevel::kInfo, "an operator drains", {{"exit", request.exit()}});
  config_.drain(request.exit());
  return absl::OkStatus();
}

absl::Status AdminService::Restart(const v1::RestartRequest&,
                                   v1::RestartResponse&) {
  if (config_.restart == nullptr) {
    return MakeError(Reason::kNoKeeper,
                     "pandod has no keeper that would start it again; run it "
                     "under pando-keeper or systemd, without --keep no");
  }
  Log(LogLevel::kInfo, "an operator restarts pandod");
  if (config_.restart()) return absl::OkStatus();
  return MakeError(Reason::kNoKeeper,
                   "pandod is ending, and is not started again");
}

}  // namespace pando
