#include "core/match/unlocking.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/match/repeats.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

absl::Status CheckDistinct(const std::vector<LockId>& ids) {
  if (ids.size() < 2) return absl::OkStatus();
  std::vector<LockId> sorted = ids;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return absl::OkStatus();
  return MakeError(Reason::kLockUnknown, Subject::kLocks,
                   absl::StrCat("lock ", twice->value(), " is listed twice"));
}

}  // namespace

void Unlocking::Prepare() {
  if (!has_begun_) status_ = CheckDistinct(locks_);
}

bool Unlocking::Step(CacheParts& parts) {
  if (!status_.ok()) return true;
  const absl::StatusOr<Session*> session = parts.sessions.GetForStep(session_);
  // The end of a session releases what is left.
  if (has_begun_) return !session.ok() || ReleaseSome(parts, **session);
  status_ = session.status();
  return !session.ok() || !Begin(parts, **session) ||
         ReleaseSome(parts, **session);
}

bool Unlocking::Begin(CacheParts& parts, Session& session) {
  const absl::StatusOr<const Unlocked*> first =
      FindAnswer<Unlocked>(parts, session, request_id_);
  status_ = first.status();
  if (!first.ok() || *first != nullptr) return false;
  status_ = parts.sessions.BeginRelease(session, locks_);
  if (!status_.ok()) return false;
  KeepAnswer(parts, session, request_id_, Unlocked());
  has_begun_ = true;
  return true;
}

bool Unlocking::ReleaseSome(CacheParts& parts, const Session& session) {
  for (uint32_t work = kStepReleases; work > 0 && released_ < locks_.size();) {
    LockRecord* const lock =
        parts.sessions.FindEndingLock(session, locks_[released_]);
    if (lock == nullptr ||
        parts.holdings.ReleaseLock(*lock, LockEnd::kUnlocked, work)) {
      ++released_;
    }
  }
  return released_ == locks_.size();
}

}  // namespace pando
