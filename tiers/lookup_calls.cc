#include "tiers/lookup_calls.h"

#include <utility>

#include "os/monotonic_clock.h"

namespace pando {
namespace {

// A call waits at most this much longer than its deadline.
constexpr absl::Duration kLatePeriod = absl::Milliseconds(2);

}  // namespace

LookupCalls::LookupCalls(TurnActions* actions)
    : answered_wakeup_(actions->AddWakeup([this] { TakeAnswers(); })),
      deadline_timer_(actions->AddTimer(absl::ZeroDuration(), [this] {
        ResumeWithDeadlineUntil(MonotonicNow());
      })) {}

uint64_t LookupCalls::Begin(Resumable& call, size_t lookups,
                            absl::Time deadline) {
  const uint64_t first = last_lookup_ + 1;
  last_lookup_ += lookups;
  if (by_call_.empty()) deadline_timer_->SetPeriod(kLatePeriod);
  by_call_[&call] = {
      .call = &call,
      .first_lookup = first,
      .unanswered = lookups,
      .looked_up = {.deadline = deadline, .kept = std::vector<Kept>(lookups)}};
  absl::MutexLock hold(&mutex_);
  for (uint64_t id = first; id <= last_lookup_; ++id) by_lookup_[id] = &call;
  return first;
}

std::optional<LookedUp> LookupCalls::End(const Resumable& call) {
  const auto it = by_call_.find(&call);
  if (it == by_call_.end()) return std::nullopt;
  Waiting waiting = std::move(it->second);
  by_call_.erase(it);
  if (by_call_.empty()) deadline_timer_->SetPeriod(absl::ZeroDuration());
  absl::MutexLock hold(&mutex_);
  for (size_t i = 0; i < waiting.looked_up.kept.size(); ++i) {
    by_lookup_.erase(waiting.first_lookup + i);
  }
  return std::move(waiting.looked_up);
}

void LookupCalls::ResumeAll() {
  ResumeWithDeadlineUntil(absl::InfiniteFuture());
}

// It collects the calls first, because Resume runs handlers, which end their
// waits and so change by_call_.
void LookupCalls::ResumeWithDeadlineUntil(absl::Time deadline) {
  std::vector<Resumable*> calls;
  for (const auto& [_, waiting] : by_call_) {
    if (waiting.looked_up.deadline <= deadline) calls.push_back(waiting.call);
  }
  for (Resumable* call : calls) call->Resume();
}

bool LookupCalls::Has(uint64_t lookup) {
  absl::MutexLock hold(&mutex_);
  return by_lookup_.contains(lookup);
}

void LookupCalls::Answer(uint64_t lookup, Kept kept) {
  {
    absl::MutexLock hold(&mutex_);
    if (!by_lookup_.contains(lookup)) return;
    answered_.push_back({lookup, kept});
  }
  answered_wakeup_->Request();
}

void LookupCalls::TakeAnswers() {
  std::vector<Answered> answered;
  {
    absl::MutexLock hold(&mutex_);
    answered.swap(answered_);
  }
  for (const auto& [lookup, kept] : answered) {
    const Resumable* call = nullptr;
    {
      absl::MutexLock hold(&mutex_);
      const auto it = by_lookup_.find(lookup);
      if (it != by_lookup_.end()) call = it->second;
    }
    if (call == nullptr) continue;
    Waiting& waiting = by_call_.at(call);
    waiting.looked_up.kept[lookup - waiting.first_lookup] = kept;
    if (--waiting.unanswered == 0) waiting.call->Resume();
  }
}

}  // namespace pando
