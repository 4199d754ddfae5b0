#include "core/sessions/session_holdings.h"

#include <utility>

namespace pando {

LockRecord& SessionHoldings::TakeLock(Session& session, Node& node) {
  tree_->Lock(node);
  ++journal_->counters().locks_taken;
  return sessions_->AddLock(session, node, journal_->time());
}

void SessionHoldings::MoveLock(LockRecord& lock, Node& descendant) {
  // When the page is still pending, the insert has published another one.
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
  FreeBatches(quarantine_.TakeBatchesOf(id));
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
  if (session->writers.AreGone()) EndLost(*session);
}

void SessionHoldings::WriterGone(WriterId writer) {
  quarantine_.Remove(writer);
  FreeBatches(quarantine_.TakeReleasable(journal_->time()));
  std::vector<Session*> lost;
  sessions_->ForEachSession([&](Session& session) {
    session.writers.Remove(writer);
    // While its stream lives, so does the session: another process may hold it.
    if (session.lost_at.has_value() && session.writers.AreGone()) {
      lost.push_back(&session);
    }
  });
  for (Session* session : lost) EndLost(*session);
}

ExpiredSessions SessionHoldings::Expire(absl::Duration quarantine) {
  const absl::Time now = journal_->time();
  FreeBatches(quarantine_.TakeReleasable(now));
  // The order in which locks go decides what is evicted first.
  std::vector<Session*> lost;
  sessions_->ForEachSession([&](Session& session) {
    if (session.lost_at.has_value() && *session.lost_at <= now) {
      lost.push_back(&session);
    }
  });
  for (Session* session : lost) {
    if (session->writers.MayWrite() && !session->reserved.pages.empty()) {
      QuarantineLost(*session, now + quarantine);
    } else {
      EndLost(*session);
    }
  }
  return std::exchange(expired_, {});
}

uint32_t SessionHoldings::FreeQuarantine(SessionNumber number, uint32_t most) {
  const Quarantine::Part part = quarantine_.TakePages(number, most);
  pool_->FreeQuarantined(part.pages);
  if (part.owner.has_value()) expired_.gone.push_back(*part.owner);
  return static_cast<uint32_t>(part.pages.size());
}

void SessionHoldings::FreeBatches(std::span<const Quarantine::Batch> batches) {
  for (const Quarantine::Batch& batch : batches) {
    pool_->FreeQuarantined(batch.pages);
    expired_.gone.push_back(batch.owner);
  }
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
  expired_.gone.push_back(session.id);
  EraseLost(session);
}

void SessionHoldings::QuarantineLost(Session& session, absl::Time until) {
  EndWaitsAndLocks(session, LockEnd::kSessionLost);
  journal_->counters().quarantined_pages += session.reserved.pages.size();
  quarantine_.Add({.owner = session.id,
                   .number = session.number,
                   .client_name = session.client_name,
                   .writers = session.writers,
                   .since = journal_->time(),
                   .until = until,
                   .pages = pool_->Quarantine(session.reserved)});
  EraseLost(session);
}

void SessionHoldings::EraseLost(Session& session) {
  expired_.lost.push_back(session.number);
  sessions_->Erase(session);
  ++journal_->counters().sessions_lost;
}

}  // namespace pando
