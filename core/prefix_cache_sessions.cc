// The life of sessions in PrefixCache, its statistics and its self-check.

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/errors.h"
#include "core/prefix_cache.h"

namespace pando {

void PrefixCache::OpenSession(SessionId id, std::string client_name) {
  absl::MutexLock hold(&mutex_);
  sessions_.Open(id, std::move(client_name));
  ++counters_.sessions_opened;
}

absl::Status PrefixCache::AttachSession(SessionId id) {
  absl::MutexLock hold(&mutex_);
  absl::StatusOr<Session*> session = FindSession(id);
  if (!session.ok()) return std::move(session).status();
  (*session)->is_attached = true;
  (*session)->is_process_gone = false;
  return absl::OkStatus();
}

void PrefixCache::CloseSession(SessionId id) {
  absl::MutexLock hold(&mutex_);
  Session* session = sessions_.Find(id);
  if (session == nullptr) return;
  ReleaseAllLocks(*session);
  FreeReserved(*session);
  sessions_.Erase(*session);
  ++counters_.sessions_closed;
}

void PrefixCache::SuspendSession(SessionId id, absl::Time lost_at) {
  absl::MutexLock hold(&mutex_);
  Session* session = sessions_.Find(id);
  if (session == nullptr) return;
  session->lost_at = lost_at;
  if (session->is_process_gone) EndLost(*session);
}

absl::Status PrefixCache::ResumeSession(SessionId id) {
  absl::MutexLock hold(&mutex_);
  absl::StatusOr<Session*> session = FindSession(id);
  if (!session.ok()) return std::move(session).status();
  (*session)->lost_at.reset();
  return absl::OkStatus();
}

absl::Status PrefixCache::CheckSession(SessionId id) {
  absl::MutexLock hold(&mutex_);
  return FindSession(id).status();
}

void PrefixCache::ProcessGone(SessionId id) {
  absl::MutexLock hold(&mutex_);
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
  ReleaseAllLocks(session);
  FreeReserved(session);
  sessions_.Erase(session);
  ++counters_.sessions_lost;
}

std::vector<SessionId> PrefixCache::ExpireSessions(absl::Time now,
                                                   absl::Duration quarantine) {
  std::vector<SessionId> gone;
  absl::MutexLock hold(&mutex_);
  for (const Quarantine::Batch& batch : quarantine_.TakeExpired(now)) {
    pool_.FreeQuarantined(batch.pages);
    gone.push_back(batch.owner);
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
    return a->reserved.ordinal < b->reserved.ordinal;
  });
  for (Session* session : lost) {
    ReleaseAllLocks(*session);
    if (session->is_attached && !session->reserved.pages.empty()) {
      counters_.quarantined_pages += session->reserved.pages.size();
      quarantine_.Add(session->id, pool_.Quarantine(session->reserved),
                      now + quarantine);
    } else {
      FreeReserved(*session);  // it never had the memory to write to
      gone.push_back(session->id);
    }
    sessions_.Erase(*session);
    ++counters_.sessions_lost;
  }
  return gone;
}

void PrefixCache::ReleaseAllLocks(Session& session) {
  while (session.first_lock != nullptr) ReleaseLock(*session.first_lock);
}

void PrefixCache::FreeReserved(Session& session) {
  while (!session.reserved.pages.empty()) {
    pool_.Release(session.reserved, session.reserved.pages.back());
  }
}

CacheStats PrefixCache::Stats() {
  absl::MutexLock hold(&mutex_);
  CacheStats stats;
  stats.pages.free = pool_.count(PageState::kFree);
  stats.pages.reserved = pool_.count(PageState::kReserved);
  stats.pages.evictable = tree_.evictable_pages();
  stats.pages.protected_ = tree_.protected_pages();
  stats.pages.quarantined = pool_.count(PageState::kQuarantined);
  stats.pages.padding = pool_.count(PageState::kPadding);
  stats.pages.capacity = pool_.capacity();
  stats.counters = counters_;
  stats.sessions = sessions_.session_count();
  stats.locks = sessions_.lock_count();
  stats.nodes = tree_.node_count();
  stats.namespaces = tree_.namespace_count();
  return stats;
}

bool PrefixCache::IsIdle() {
  absl::MutexLock hold(&mutex_);
  return sessions_.lock_count() == 0 && pool_.count(PageState::kReserved) == 0;
}

std::vector<std::string> PrefixCache::CheckInvariants() {
  absl::MutexLock hold(&mutex_);
  std::vector<std::string> violations;
  pool_.AppendViolations(violations);

  absl::flat_hash_map<const Node*, uint32_t> locks_on;
  sessions_.ForEachLock([&](const LockRecord& lock) {
    mutex_.AssertHeld();  // for the analysis: a lambda is a function apart
    ++locks_on[lock.node];
    if (sessions_.Find(lock.session->id) != lock.session) {
      violations.push_back("sessions: a lock belongs to no live session");
    }
  });
  tree_.AppendViolations(
      [&](const Node& node) {
        const auto it = locks_on.find(&node);
        if (it == locks_on.end()) return 0u;
        const uint32_t locks = it->second;
        locks_on.erase(it);
        return locks;
      },
      violations);
  if (!locks_on.empty()) {
    violations.push_back("sessions: a lock names a node that is gone");
  }

  absl::flat_hash_set<PageId> in_tree;
  tree_.ForEachNode([&](const Node& node) {
    mutex_.AssertHeld();
    for (PageId page : node.pages()) {
      if (!in_tree.insert(page).second) {
        violations.push_back(
            absl::StrCat("tree: page ", page.value(), " is in two nodes"));
      }
      if (pool_.state(page) != PageState::kSealed) {
        violations.push_back(
            absl::StrCat("tree: page ", page.value(), " is not sealed"));
      }
    }
  });
  if (in_tree.size() != pool_.count(PageState::kSealed)) {
    violations.push_back("pool: a sealed page is in no node");
  }
  size_t reserved = 0;
  sessions_.ForEachSession([&](const Session& session) {
    mutex_.AssertHeld();
    reserved += session.reserved.pages.size();
    for (PageId page : session.reserved.pages) {
      if (!pool_.IsReservedBy(session.reserved, page)) {
        violations.push_back(absl::StrCat("sessions: page ", page.value(),
                                          " is not reserved by its owner"));
      }
    }
  });
  if (reserved != pool_.count(PageState::kReserved)) {
    violations.push_back("pool: a reserved page belongs to no session");
  }
  if (quarantine_.page_count() != pool_.count(PageState::kQuarantined)) {
    violations.push_back("pool: a quarantined page is in no batch");
  }
  return violations;
}

}  // namespace pando
