#include "service/handlers/pending_matches.h"

#include "os/monotonic_clock.h"

namespace pando {
namespace {

// A wait whose time is up ends at most this late, unless its connection takes
// no answers.
constexpr absl::Duration kLatePeriod = absl::Milliseconds(2);

v1::PendingOutcome ToWire(PendingOutcome outcome) {
  switch (outcome) {
    case PendingOutcome::kPublished:
      return v1::PENDING_OUTCOME_PUBLISHED;
    case PendingOutcome::kLoaded:
      return v1::PENDING_OUTCOME_LOADED;
    case PendingOutcome::kGivenUp:
      return v1::PENDING_OUTCOME_GIVEN_UP;
    case PendingOutcome::kOwnerLost:
      return v1::PENDING_OUTCOME_OWNER_LOST;
  }
  return v1::PENDING_OUTCOME_UNSPECIFIED;
}

}  // namespace

PendingMatches::PendingMatches(PrefixCache* cache, RpcServer* server)
    : cache_(cache),
      ended_wakeup_(server->AddWakeup([this] { ResumeEnded(); })),
      deadline_timer_(server->AddTimer(absl::ZeroDuration(),
                                       [this] { ResumeTimedOut(); })) {}

void PendingMatches::WaitOver(WaitId wait, PendingOutcome outcome) {
  {
    absl::MutexLock hold(&mutex_);
    ended_.emplace_back(wait, outcome);
  }
  ended_wakeup_->Request();
}

void PendingMatches::ResumeEnded() {
  std::vector<std::pair<WaitId, PendingOutcome>> ended;
  {
    absl::MutexLock hold(&mutex_);
    ended.swap(ended_);
  }
  for (const auto& [id, outcome] : ended) {
    const auto it = by_id_.find(id);
    if (it == by_id_.end()) continue;  // its time was up meanwhile
    Wait& wait = by_call_.at(it->second);
    wait.outcome = outcome;
    wait.call->Resume();
  }
}

void PendingMatches::Begin(WaitingCall& call, const Name& name, WaitId id,
                           const LookedUp& looked_up) {
  if (by_call_.empty()) deadline_timer_->SetPeriod(kLatePeriod);
  by_id_[id] = &call;
  if (name.second != RequestId()) by_name_[name] = &call;
  by_call_[&call] = {.call = &call,
                     .name = name,
                     .id = id,
                     .began = MonotonicNow(),
                     .looked_up = looked_up,
                     .outcome = std::nullopt};
}

std::optional<PendingMatches::Waited> PendingMatches::End(
    const WaitingCall& call) {
  const auto it = by_call_.find(&call);
  if (it == by_call_.end()) return std::nullopt;
  const Wait wait = it->second;
  by_call_.erase(it);
  by_id_.erase(wait.id);
  const auto named = by_name_.find(wait.name);
  if (named != by_name_.end() && named->second == &call) by_name_.erase(named);
  if (by_call_.empty()) deadline_timer_->SetPeriod(absl::ZeroDuration());
  seconds_.Record(absl::ToDoubleSeconds(MonotonicNow() - wait.began));
  Waited waited{v1::PENDING_OUTCOME_TIMED_OUT, wait.looked_up,
                wait.is_given_up};
  if (wait.outcome.has_value()) {
    waited.outcome = ToWire(*wait.outcome);
  } else {
    cache_->CancelWait(wait.id);
  }
  return waited;
}

void PendingMatches::GiveUp(const Name& name) {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return;
  Wait& wait = by_call_.at(it->second);
  wait.is_given_up = true;
  wait.call->Resume();
}

void PendingMatches::ResumeAll() {
  ResumeWithDeadlineUntil(absl::InfiniteFuture());
}

void PendingMatches::ResumeTimedOut() {
  ResumeWithDeadlineUntil(MonotonicNow());
}

// Copies the calls first, because a handler that runs again changes by_call_:
// it ends this wait, and may begin another.
void PendingMatches::ResumeWithDeadlineUntil(absl::Time deadline) {
  std::vector<WaitingCall*> calls;
  for (const auto& [_, wait] : by_call_) {
    if (wait.looked_up.deadline <= deadline) calls.push_back(wait.call);
  }
  for (WaitingCall* call : calls) call->Resume();
}

}  // namespace pando
