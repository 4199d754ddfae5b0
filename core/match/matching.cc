#include "core/match/matching.h"

#include <algorithm>

#include "base/status_macros.h"
#include "core/match/page_steps.h"
#include "core/match/repeats.h"
#include "core/tree/prefix_search.h"

namespace pando {

Matching::Matching(const MatchRequest& request, uint32_t page_tokens,
                   uint32_t capacity_pages, SegmentArena* arena)
    : request_(request), arena_(arena), status_(CheckMatch(request)) {
  result_.pages.reserve(request.tokens.size() / page_tokens);
  result_.reserved.reserve(
      std::min(PagesFor(request.reserve_tokens, page_tokens), capacity_pages));
}

void Matching::Prepare() {
  if (stage_ == Stage::kHold) prompt_ = CopyPrompt(request_, result_, arena_);
}

bool Matching::Step(CacheParts& parts) {
  if (stage_ == Stage::kBegin) return Begin(parts);
  const absl::StatusOr<Session*> session =
      parts.sessions.GetForStep(request_.session);
  if (!session.ok()) {  // its end has taken the lock and the pages
    if (stage_ == Stage::kReserve) status_ = session.status();
    return true;
  }
  switch (stage_) {
    case Stage::kReserve:
      return Reserve(parts, **session);
    case Stage::kHold:
      HoldPrompt(parts, request_, result_, std::move(prompt_));
      return true;
    case Stage::kForget:
      ForgetPrompt(parts, **session);
      return true;
    case Stage::kUnlock:
      return Unlock(parts, **session);
    default:
      if (!FreeLast(parts, **session, result_.reserved)) return false;
      EndSteps(**session, request_.request_id);
      return true;
  }
}

bool Matching::Begin(CacheParts& parts) {
  if (!status_.ok()) return true;
  Session* session = nullptr;
  status_ = Admit(parts, session);
  if (!status_.ok() || result_.is_repeat) return true;
  if (session != nullptr && IsUnderWay(*session, request_.request_id)) {
    return false;
  }
  status_ = MatchAndLock(parts, request_, session, result_, reservation_);
  if (!status_.ok()) return true;
  if (session != nullptr && result_.wait == WaitId()) {
    if (result_.reserved.size() == reservation_.pages) {
      return FinishReserving(parts, *session);
    }
    BeginSteps(*session, request_.request_id);
    MakeListRoom(*session, reservation_.pages - result_.reserved.size());
    stage_ = Stage::kReserve;
    return false;
  }
  result_.room = RoomOf(parts);
  return true;
}

absl::Status Matching::Admit(CacheParts& parts, Session*& session) {
  if (!request_.lock) return absl::OkStatus();
  ASSIGN_OR_RETURN(session, parts.sessions.GetForStep(request_.session));
  if (IsUnderWay(*session, request_.request_id)) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const MatchResult* const first,
      FindAnswer<MatchResult>(parts, *session, request_.request_id));
  if (first == nullptr) return CheckAdmits(parts);
  result_ = RepeatedNow(parts, *first);
  return absl::OkStatus();
}

bool Matching::Reserve(CacheParts& parts, Session& session) {
  status_ = ReserveMore(parts, session, reservation_.quota_class,
                        reservation_.pages, result_.reserved);
  if (!status_.ok()) {
    stage_ = Stage::kUnlock;
    return false;
  }
  return result_.reserved.size() == reservation_.pages &&
         FinishReserving(parts, session);
}

bool Matching::FinishReserving(CacheParts& parts, Session& session) {
  EndSteps(session, request_.request_id);
  result_.room = RoomOf(parts);
  KeepAnswer(parts, session, request_.request_id, result_);
  if (result_.reserved.empty()) return true;
  stage_ = Stage::kHold;
  return false;
}

void Matching::ForgetPrompt(CacheParts& parts, const Session& session) {
  LockRecord* const lock = parts.sessions.FindLock(session, result_.lock);
  if (lock != nullptr && !lock->prompt.tokens) parts.sessions.DropPrompt(*lock);
}

bool Matching::Unlock(CacheParts& parts, Session& session) {
  LockRecord* lock = parts.sessions.FindLock(session, result_.lock);
  if (lock == nullptr) {
    lock = parts.sessions.FindEndingLock(session, result_.lock);
  }
  uint32_t work = kStepReleases;
  if (lock == nullptr ||
      parts.holdings.ReleaseLock(*lock, LockEnd::kUnlocked, work)) {
    stage_ = Stage::kGiveBack;
  }
  return false;
}

std::optional<Operation> Matching::operation() const {
  if (stage_ == Stage::kHold) return std::nullopt;
  return Operation::kMatch;
}

bool Matching::Abandon() {
  if (stage_ == Stage::kBegin) return false;
  if (stage_ == Stage::kHold) {
    stage_ = Stage::kForget;
    return true;
  }
  status_ = absl::CancelledError("the caller is gone");
  stage_ = Stage::kUnlock;
  return true;
}

absl::StatusOr<MatchResult> Matching::Take() {
  if (!status_.ok()) return status_;
  return std::move(result_);
}

}  // namespace pando
