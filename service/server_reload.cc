// The parts of Server that apply reloaded options.

#include "absl/strings/str_join.h"
#include "core/operators/policy_change.h"
#include "os/logging/log.h"
#include "service/server.h"

namespace pando {

void Server::Reload(const Options& given) {
  if (open_pool_ != nullptr) {
    Log(LogLevel::kInfo,
        "the options are read again when the open pool takes a layout");
    return;
  }
  const absl::StatusOr<OptionChanges> changes = ChangesTo(options_, given);
  if (!changes.ok()) {
    Log(LogLevel::kError, "the options stay as they are",
        {{"error", changes.status().message()}});
    return;
  }
  // A policy that an operator has set stays until the option changes.
  if (changes->options.eviction_policy != options_.eviction_policy) {
    ChangePolicy(changes->options.eviction_policy);
  }
  rpc_.RunOnPollingThread([&] { Apply(*changes); });
  Log(LogLevel::kInfo, "the options were read again",
      {{"changed", absl::StrJoin(changes->live, ", ")}});
  if (changes->need_restart.empty()) return;
  Log(LogLevel::kWarning, "changed options need a restart",
      {{"options", absl::StrJoin(changes->need_restart, ", ")}});
}

// Changes the policy in steps; other calls are served between them.
void Server::ChangePolicy(EvictionPolicyKind policy) {
  PolicyChange change(policy);
  auto progress = SteppedCalls::Progress::kMore;
  while (progress != SteppedCalls::Progress::kDone) {
    rpc_.RunOnPollingThread(
        [&] { progress = SteppedCalls::TakeSteps(cache_, change); });
  }
}

void Server::Apply(const OptionChanges& changes) {
  options_ = changes.options;
  SetLogLevel(options_.log_level);
  policy_.set_slow_call(options_.slow_call);
  session_service_->set_grace(options_.session_grace);
  cache_.SetWatermark(options_.low_free_pages, options_.high_free_pages);
  cache_.SetQuotas(options_.quotas);
  cache_.SetBlockLimits(options_.block_quotas, options_.block_write_limit);
  cache_.SetSessionLimits(SessionLimitsOf(options_));
  policy_.call_rates().SetLimit(options_.max_calls_per_second);
  watermark_timer_->SetPeriod(WatermarkPeriod());
  check_timer_->SetPeriod(options_.check_invariants_every);
}

}  // namespace pando
