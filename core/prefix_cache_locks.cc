// The locks of PrefixCache.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/errors.h"
#include "core/prefix_cache.h"

namespace pando {
namespace {

absl::Status CheckDistinct(std::span<const LockId> ids) {
  if (ids.size() < 2) return absl::OkStatus();
  std::vector<LockId> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return absl::OkStatus();
  return MakeError(Reason::kLockUnknown,
                   absl::StrCat("lock ", twice->value(), " is listed twice"));
}

}  // namespace

absl::StatusOr<LockResult> PrefixCache::Lock(const LockRequest& request) {
  Hold hold(this, Operation::kLock);
  ASSIGN_OR_RETURN(Session* const session, FindSession(request.session));
  ASSIGN_OR_RETURN(const auto* const answer,
                   FindAnswer<LockResult>(*session, request.request_id));
  if (answer != nullptr) return *answer;
  ASSIGN_OR_RETURN(FoundPrefix found, FindPrefix({.ns = request.ns,
                                                  .tokens = request.tokens,
                                                  .after = request.after},
                                                 nullptr));
  RETURN_IF_ERROR(CheckSessionLimits(*session, 1, 0));
  LockResult result;
  result.locked_tokens = found.pages() * options_.page_tokens;
  Node& end = found.ns == nullptr ? *tree_.MakeNamespace(request.ns).root
                                  : tree_.NodeEndingAt(found.position);
  result.lock = SessionTable::IdOf(TakeLock(*session, end));
  tree_.Touch(end);
  if (!end.is_root()) result.handle = HandleTo(EndOf(end));
  KeepAnswer(*session, request.request_id, result);
  return result;
}

absl::Status PrefixCache::Unlock(SessionId session_id,
                                 std::span<const LockId> ids,
                                 RequestId request_id) {
  RETURN_IF_ERROR(CheckDistinct(ids));

  Hold hold(this, Operation::kUnlock);
  ASSIGN_OR_RETURN(Session* const session, FindSession(session_id));
  auto answer = FindAnswer<Unlocked>(*session, request_id);
  if (!answer.ok() || *answer != nullptr) return std::move(answer).status();
  for (LockId id : ids) {
    if (absl::StatusOr<LockRecord*> lock = FindLock(*session, id); !lock.ok()) {
      return std::move(lock).status();
    }
  }
  for (LockId id : ids) {
    ReleaseLock(*sessions_.FindLock(*session, id), LockEnd::kUnlocked);
  }
  KeepAnswer(*session, request_id, Unlocked());
  return absl::OkStatus();
}

absl::StatusOr<LockRecord*> PrefixCache::FindLock(const Session& session,
                                                  LockId id) {
  LockRecord* lock = sessions_.FindLock(session, id);
  if (lock != nullptr) return lock;
  return MakeError(
      Reason::kLockUnknown,
      absl::StrCat("lock ", id.value(), " is not held by this session"));
}

LockRecord& PrefixCache::TakeLock(Session& session, Node& node) {
  tree_.Lock(node);
  ++counters_.locks_taken;
  return sessions_.AddLock(session, node, time_);
}

void PrefixCache::ReleaseLock(LockRecord& lock, LockEnd end) {
  const bool is_owner_lost =
      end == LockEnd::kSessionClosed || end == LockEnd::kSessionLost;
  EndPending(lock.pending, is_owner_lost ? PendingOutcome::kOwnerLost
                                         : PendingOutcome::kGivenUp);
  ++measured_.ended_locks[end];
  // Milliseconds, as a quotient of durations takes longer than all of this.
  measured_.lock_hold_seconds.Record(
      static_cast<double>(absl::ToInt64Milliseconds(time_ - lock.taken_at)) /
      1000);
  Namespace& ns = *lock.node->ns;
  tree_.Unlock(*lock.node);
  sessions_.RemoveLock(lock);
  tree_.Prune(ns);
  ++counters_.locks_released;
}

}  // namespace pando
