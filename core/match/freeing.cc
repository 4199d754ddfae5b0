#include "core/match/freeing.h"

#include <algorithm>
#include <span>

#include "core/match/repeats.h"

namespace pando {

bool Freeing::Step(CacheParts& parts) {
  const absl::StatusOr<Session*> session = parts.sessions.GetForStep(session_);
  if (!session.ok()) {
    status_ = session.status();
    return true;
  }
  switch (stage_) {
    case Stage::kBegin:
      return Begin(parts, **session);
    case Stage::kCheck:
      return Check(parts, **session);
    case Stage::kFree:
      return Free(parts, **session);
    case Stage::kStop:
      break;
  }
  EndSteps(**session, request_id_);
  return true;
}

bool Freeing::Begin(CacheParts& parts, Session& session) {
  if (IsUnderWay(session, request_id_)) return false;
  const absl::StatusOr<const Freed*> first =
      FindAnswer<Freed>(parts, session, request_id_);
  status_ = first.status();
  if (!first.ok() || *first != nullptr) return true;
  if (pages_.size() > kStepFreedPages) {
    BeginSteps(session, request_id_);
    stage_ = Stage::kCheck;
    return false;
  }
  status_ = parts.pool.CheckReserved(session.reserved, pages_);
  return !status_.ok() || Free(parts, session);
}

bool Freeing::Check(CacheParts& parts, Session& session) {
  const auto next = std::span(pages_).subspan(
      checked_, std::min<size_t>(pages_.size() - checked_, kStepFreedPages));
  status_ = listed_.CheckMore(parts.pool, session.reserved, next);
  if (!status_.ok()) {
    EndSteps(session, request_id_);
    return true;
  }
  checked_ += next.size();
  if (checked_ == pages_.size()) stage_ = Stage::kFree;
  return false;
}

bool Freeing::Free(CacheParts& parts, Session& session) {
  if (!FreeLast(parts, session, pages_)) return false;
  EndSteps(session, request_id_);
  KeepAnswer(parts, session, request_id_, Freed());
  return true;
}

bool Freeing::Abandon() {
  if (stage_ == Stage::kCheck) stage_ = Stage::kStop;
  return stage_ != Stage::kBegin;
}

}  // namespace pando
