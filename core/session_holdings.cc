#include "core/session_holdings.h"

#include <utility>

namespace pando {

LockRecord& SessionHoldings::TakeLock(Session& session, Node& node) {
  tree_->Lock(node);
  ++journal_->counters().locks_taken;
  return sessions_->AddLock(session, node, journal_->time());
}

void SessionHoldings::MoveLock(LockRecord& lock, Node& descendant) {
  // Still marked: the insert went another way.
  pending_->End(lock.pending, PendingOutcome::kGivenUp);
  tree_->Lock(descendant, lock.node);
  sessions_->MoveLock(lock, descendant);
}

void SessionHoldings::ReleaseLock(LockRecord& lock, LockEnd end) {
  const bool is_owner_lost =
      end == LockEnd::kSessionClosed || end == LockEnd::kSessionLost;
  pending_->End(lock.pending, is_owner_lost ? PendingOutcome::kOwnerLost
                                            : PendingOutcome::kGivenUp);
  journal_->NoteLockEnd(end, lock.taken_at);
  Namespace& ns = *lock.node->ns;
  tree_->Unlock(*lock.node);
  sessions_->RemoveLock(lock);
  tree_->Prune(ns);
}

uint32_t SessionHoldings::ReleaseLocks(Session& session, LockEnd end) {
  uint32_t released = 0;
  for (; session.first_lock != nullptr; ++released) {
    ReleaseLock(*session.first_lock, end);
  }
  return released;
}

void SessionHoldings::FreePage(Session& session, PageId page) {
  pending_->EndReserved(pool_->reservation(page));
  pool_->Release(session.reserved, page);
}

SessionNumber SessionHoldings::Open(SessionId id, std::string client_name) {
  ++journal_->counters().sessions_opened;
  return sessions_->Open(id, std::move(client_name), journal_->time()).number;
}

void SessionHoldings::Close(SessionId id) {
  Session* session = sessions_->Find(id);
  if (session == nullptr) return;
  EndWaitsAndLocks(*session, LockEnd::kSessionClosed);
  FreeReserved(*session);
  sessions_->Erase(*session);
  ++journal_->counters().sessions_closed;
}

void SessionHoldings::Suspend(SessionId id, absl::Time lost_at) {
  Session* session = sessions_->Find(id);
  if (session == nullptr) return;
  session->lost_at = lost_at;
  if (session->is_process_gone) EndLost(*session);
}

void SessionHoldings::ProcessGone(SessionId id) {
  for (const Quarantine::Batch& batch : quarantine_.TakeOf(id)) {
    pool_->FreeQuarantined(batch.pages);
  }
  Session* session = sessions_->Find(id);
  if (session == nullptr) return;
  session->is_process_gone = true;
  // While its stream lives, so does the session: another process may hold it.
  if (session->lost_at.has_value()) EndLost(*session);
}

ExpiredSessions SessionHoldings::Expire(absl::Duration quarantine) {
  const absl::Time now = journal_->time();
  ExpiredSessions expired;
  for (const Quarantine::Batch& batch : quarantine_.TakeExpired(now)) {
    pool_->FreeQuarantined(batch.pages);
    expired.gone.push_back(batch.owner);
  }
  // The order in which locks go decides what is evicted first.
  std::vector<Session*> lost;
  sessions_->ForEachSession([&](Session& session) {
    if (session.lost_at.has_value() && *session.lost_at <= now) {
      lost.push_back(&session);
    }
  });
  for (Session* session : lost) {
    EndWaitsAndLocks(*session, LockEnd::kSessionLost);
    if (session->is_attached && !session->reserved.pages.empty()) {
      journal_->counters().quarantined_pages += session->reserved.pages.size();
      quarantine_.Add(session->id, pool_->Quarantine(session->reserved),
                      now + quarantine);
    } else {
      FreeReserved(*session);  // it never had the memory to write to
      expired.gone.push_back(session->id);
    }
    EraseLost(*session);
  }
  expired.lost = std::exchange(lost_, {});
  return expired;
}

void SessionHoldings::EndWaitsAndLocks(Session& session, LockEnd end) {
  pending_->EndWaitsOf(session.id);
  ReleaseLocks(session, end);
}

void SessionHoldings::FreeReserved(Session& session) {
  while (!session.reserved.pages.empty()) {
    pool_->Release(session.reserved, session.reserved.pages.back());
  }
}

void SessionHoldings::EndLost(Session& session) {
  EndWaitsAndLocks(session, LockEnd::kSessionLost);
  FreeReserved(session);
  EraseLost(session);
}

void SessionHoldings::EraseLost(Session& session) {
  lost_.push_back(session.number);
  sessions_->Erase(session);
  ++journal_->counters().sessions_lost;
}

}  // namespace pando
