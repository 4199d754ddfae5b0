#include "service/pending_matches.h"

#include <grpcpp/alarm.h>

#include "absl/time/clock.h"

namespace pando {
namespace {

v1::PendingOutcome ToWire(PendingOutcome outcome) {
  switch (outcome) {
    case PendingOutcome::kPublished:
      return v1::PENDING_OUTCOME_PUBLISHED;
    case PendingOutcome::kGivenUp:
      return v1::PENDING_OUTCOME_GIVEN_UP;
    case PendingOutcome::kOwnerLost:
      return v1::PENDING_OUTCOME_OWNER_LOST;
  }
  return v1::PENDING_OUTCOME_UNSPECIFIED;
}

}  // namespace

// One wait of one call, with the alarm that limits it. Outlives its end until
// the alarm is done.
class PendingMatches::Wait : public Event {
 public:
  Wait(PendingMatches* owner, WaitingCall* call, WaitId id, absl::Time deadline)
      : owner_(owner), call_(call), id_(id), deadline_(deadline) {
    alarm_.Set(owner->server_->queue(), absl::ToChronoTime(deadline), this);
  }

  WaitingCall* call() const { return call_; }
  WaitId id() const { return id_; }
  absl::Time began() const { return began_; }
  absl::Time deadline() const { return deadline_; }
  // None while it is not over.
  std::optional<PendingOutcome> outcome() const { return outcome_; }
  void set_outcome(PendingOutcome outcome) { outcome_ = outcome; }

  // The wait ends. Whether the alarm is still to come.
  bool End() {
    has_ended_ = true;
    if (!is_alarm_done_) alarm_.Cancel();
    return !is_alarm_done_;
  }

  // The time is up, or the alarm was cancelled. Both ways delete this.
  void Run(bool) override {
    is_alarm_done_ = true;
    if (has_ended_) {
      owner_->ended_.erase(this);
    } else {
      call_->Resume();
    }
  }

 private:
  PendingMatches* const owner_;
  WaitingCall* const call_;
  const WaitId id_;
  const absl::Time began_ = absl::Now();
  const absl::Time deadline_;
  std::optional<PendingOutcome> outcome_;
  bool has_ended_ = false;
  bool is_alarm_done_ = false;
  grpc::Alarm alarm_;
};

PendingMatches::PendingMatches(PrefixCache* cache, RpcServer* server)
    : cache_(cache),
      server_(server),
      some_are_over_(server->AddWakeup([this] { ResumeOver(); })) {}

PendingMatches::~PendingMatches() = default;

void PendingMatches::WaitOver(WaitId wait, PendingOutcome outcome) {
  {
    absl::MutexLock hold(&mutex_);
    over_.emplace_back(wait, outcome);
  }
  some_are_over_->Request();
}

void PendingMatches::ResumeOver() {
  std::vector<std::pair<WaitId, PendingOutcome>> over;
  {
    absl::MutexLock hold(&mutex_);
    over.swap(over_);
  }
  for (const auto& [id, outcome] : over) {
    const auto it = by_id_.find(id);
    if (it == by_id_.end()) continue;  // its time was up meanwhile
    it->second->set_outcome(outcome);
    it->second->call()->Resume();
  }
}

void PendingMatches::Begin(WaitingCall& call, WaitId id, absl::Time deadline) {
  auto wait = std::make_unique<Wait>(this, &call, id, deadline);
  by_id_[id] = wait.get();
  by_call_[&call] = std::move(wait);
}

std::optional<PendingMatches::Waited> PendingMatches::End(
    const WaitingCall& call) {
  const auto it = by_call_.find(&call);
  if (it == by_call_.end()) return std::nullopt;
  std::unique_ptr<Wait> wait = std::move(it->second);
  by_call_.erase(it);
  by_id_.erase(wait->id());
  seconds_.Record(absl::ToDoubleSeconds(absl::Now() - wait->began()));
  Waited waited{v1::PENDING_OUTCOME_TIMED_OUT, wait->deadline()};
  if (wait->outcome().has_value()) {
    waited.outcome = ToWire(*wait->outcome());
  } else {
    cache_->CancelWait(wait->id());
  }
  if (wait->End()) ended_.insert(std::move(wait));
  return waited;
}

void PendingMatches::ResumeAll() {
  std::vector<WaitingCall*> calls;
  for (const auto& [call, wait] : by_call_) calls.push_back(wait->call());
  for (WaitingCall* call : calls) call->Resume();
}

}  // namespace pando
