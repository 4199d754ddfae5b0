// The life of sessions in PrefixCache.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/errors.h"
#include "core/prefix_cache.h"

namespace pando {

SessionNumber PrefixCache::OpenSession(SessionId id, std::string client_name) {
  absl::MutexLock hold(&mutex_);
  ++counters_.sessions_opened;
  return sessions_.Open(id, std::move(client_name), time_).number;
}

absl::Status PrefixCache::AttachSession(SessionId id) {
  absl::MutexLock hold(&mutex_);
  ASSIGN_OR_RETURN(Session* const session, FindSession(id));
  session->is_attached = true;
  session->is_process_gone = false;
  return absl::OkStatus();
}

void PrefixCache::CloseSession(SessionId id) {
  Hold hold(this);
  Session* session = sessions_.Find(id);
  if (session == nullptr) return;
  ReleaseAllLocks(*session, LockEnd::kSessionClosed);
  FreeReserved(*session);
  sessions_.Erase(*session);
  ++counters_.sessions_closed;
}

void PrefixCache::SuspendSession(SessionId id, absl::Time lost_at) {
  Hold hold(this);
  Session* session = sessions_.Find(id);
  if (session == nullptr) return;
  session->lost_at = lost_at;
  if (session->is_process_gone) EndLost(*session);
}

absl::StatusOr<SessionNumber> PrefixCache::ResumeSession(SessionId id) {
  absl::MutexLock hold(&mutex_);
  ASSIGN_OR_RETURN(Session* const session, FindSession(id));
  session->lost_at.reset();
  return session->number;
}

absl::Status PrefixCache::CheckSession(SessionId id) {
  absl::MutexLock hold(&mutex_);
  return FindSession(id).status();
}

void PrefixCache::SetSessionLimits(const SessionLimits& limits) {
  absl::MutexLock hold(&mutex_);
  session_limits_ = limits;
}

absl::Status PrefixCache::CheckSessionLimits(const Session& session,
                                             uint32_t locks, uint32_t pages) {
  const auto [max_locks, max_pages] = session_limits_;
  if (locks > 0 && max_locks > 0 && session.lock_count >= max_locks) {
    return MakeError(
        Reason::kSessionLimit,
        absl::StrCat("the session has ", session.lock_count,
                     " locks; max-locks-per-session is ", max_locks));
  }
  const size_t reserved = session.reserved.pages.size();
  if (pages > 0 && max_pages > 0 && reserved + pages > max_pages) {
    return MakeError(
        Reason::kSessionLimit,
        absl::StrCat(pages, " pages are needed, but the session has reserved ",
                     reserved, "; max-reserved-pages-per-session is ",
                     max_pages));
  }
  return absl::OkStatus();
}

void PrefixCache::ProcessGone(SessionId id) {
  Hold hold(this);
  for (const Quarantine::Batch& batch : quarantine_.TakeOf(id)) {
    pool_.FreeQuarantined(batch.pages);
  }
  Session* session = sessions_.Find(id);
  if (session == nullptr) return;
  session->is_process_gone = true;
  // While its stream lives, so does the session: another process may hold it.
  if (session->lost_at.has_value()) EndLost(*session);
}

void PrefixCache::EndLost(Session& session) {
  ReleaseAllLocks(session, LockEnd::kSessionLost);
  FreeReserved(session);
  EraseLost(session);
}

void PrefixCache::EraseLost(Session& session) {
  lost_sessions_.push_back(session.number);
  sessions_.Erase(session);
  ++counters_.sessions_lost;
}

ExpiredSessions PrefixCache::ExpireSessions(absl::Time now,
                                            absl::Duration quarantine) {
  ExpiredSessions expired;
  Hold hold(this);
  time_ = now;
  tree_.set_time(static_cast<uint32_t>(absl::ToUnixMillis(now) / 100));
  for (const Quarantine::Batch& batch : quarantine_.TakeExpired(now)) {
    pool_.FreeQuarantined(batch.pages);
    expired.gone.push_back(batch.owner);
  }
  std::vector<Session*> lost;
  sessions_.ForEachSession([&](Session& session) {
    if (session.lost_at.has_value() && *session.lost_at <= now) {
      lost.push_back(&session);
    }
  });
  // Oldest first: the order in which locks go decides what is evicted first,
  // and that of the hash table differs from run to run.
  std::sort(lost.begin(), lost.end(), [](const Session* a, const Session* b) {
    return a->number < b->number;
  });
  for (Session* session : lost) {
    ReleaseAllLocks(*session, LockEnd::kSessionLost);
    if (session->is_attached && !session->reserved.pages.empty()) {
      counters_.quarantined_pages += session->reserved.pages.size();
      quarantine_.Add(session->id, pool_.Quarantine(session->reserved),
                      now + quarantine);
    } else {
      FreeReserved(*session);  // it never had the memory to write to
      expired.gone.push_back(session->id);
    }
    EraseLost(*session);
  }
  expired.lost.swap(lost_sessions_);
  return expired;
}

void PrefixCache::ReleaseAllLocks(Session& session, LockEnd end) {
  counters_.pending_waits_given_up += pending_.EndWaitsOf(session.id);
  while (session.first_lock != nullptr) {
    ReleaseLock(*session.first_lock, end);
  }
}

void PrefixCache::FreeReserved(Session& session) {
  while (!session.reserved.pages.empty()) {
    pool_.Release(session.reserved, session.reserved.pages.back());
  }
}

}  // namespace pando
