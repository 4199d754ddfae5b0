#include "core/match/allocation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/match/page_steps.h"
#include "core/match/repeats.h"

namespace pando {

Allocation::Allocation(const AllocateRequest& request, uint32_t quota_class,
                       uint32_t capacity_pages)
    : session_(request.session),
      quota_class_(quota_class),
      most_(request.pages),
      least_(request.min_pages.value_or(request.pages)),
      request_id_(request.request_id) {
  if (least_ > most_) {
    status_ =
        MakeError(Reason::kInvalidField,
                  absl::StrCat("min_pages is ", least_,
                               "; must be at most pages, which is ", most_));
  }
  result_.pages.reserve(std::min(most_, capacity_pages));
}

bool Allocation::Step(CacheParts& parts) {
  if (stage_ == Stage::kBegin && !status_.ok()) return true;
  const absl::StatusOr<Session*> session = parts.sessions.GetForStep(session_);
  if (!session.ok()) {  // its end frees what was reserved
    status_ = session.status();
    return true;
  }
  if (stage_ == Stage::kBegin) {
    if (IsUnderWay(**session, request_id_)) return false;
    status_ = Begin(parts, **session);
    if (!status_.ok() || result_.is_repeat) return true;
    if (result_.pages.size() == wanted_) return Finish(parts, **session);
    BeginSteps(**session, request_id_);
    MakeListRoom(**session, wanted_ - result_.pages.size());
    stage_ = Stage::kReserve;
    return false;
  }
  if (stage_ == Stage::kReserve) return Reserve(parts, **session);
  if (!FreeLast(parts, **session, result_.pages)) return false;
  EndSteps(**session, request_id_);
  return true;
}

absl::Status Allocation::Begin(CacheParts& parts, Session& session) {
  ASSIGN_OR_RETURN(const AllocateResult* const first,
                   FindAnswer<AllocateResult>(parts, session, request_id_));
  if (first != nullptr) {
    result_ = RepeatedNow(parts, *first);
    return absl::OkStatus();
  }
  if (!session.holds_anything()) RETURN_IF_ERROR(CheckAdmits(parts));
  const uint32_t most = std::min(parts.sessions.MaxMorePages(session),
                                 parts.budget.MaxMorePages(quota_class_));
  wanted_ = std::max(least_, std::min(most_, most));
  RETURN_IF_ERROR(parts.sessions.CheckMorePages(session, wanted_));
  RETURN_IF_ERROR(parts.budget.CheckRoom(wanted_, quota_class_, 0));
  parts.budget.Reserve(std::min(wanted_, kStepReservedPages), quota_class_,
                       session.reserved, result_.pages);
  return absl::OkStatus();
}

bool Allocation::Reserve(CacheParts& parts, Session& session) {
  status_ = ReserveMore(parts, session, quota_class_, wanted_, result_.pages);
  if (status_.ok()) {
    return result_.pages.size() == wanted_ && Finish(parts, session);
  }
  if (result_.pages.size() >= least_) {
    status_ = absl::OkStatus();
    return Finish(parts, session);
  }
  stage_ = Stage::kGiveBack;
  return false;
}

bool Allocation::Finish(CacheParts& parts, Session& session) {
  EndSteps(session, request_id_);
  result_.room = RoomOf(parts);
  KeepAnswer(parts, session, request_id_, result_);
  return true;
}

bool Allocation::Abandon() {
  if (stage_ == Stage::kBegin) return false;
  status_ = absl::CancelledError("the caller is gone");
  stage_ = Stage::kGiveBack;
  return true;
}

absl::StatusOr<AllocateResult> Allocation::Take() {
  if (!status_.ok()) return status_;
  return std::move(result_);
}

}  // namespace pando
