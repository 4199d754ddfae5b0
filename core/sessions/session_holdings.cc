#include "core/sessions/session_holdings.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/nodes/step_sizes.h"

namespace pando {
namespace {

constexpr uint32_t kPagesOfAUnit = 8;

}  // namespace

LockRecord& SessionHoldings::TakeLock(Session& session, Node& node) {
  tree_->Lock(node);
  ++journal_->counters().locks_taken;
  return sessions_->AddLock(session, node, journal_->time());
}

void SessionHoldings::MoveLock(LockRecord& lock, Node& descendant) {
  // When the page is still pending, the insert has published another one.
  pending_->End(lock.pending, PendingOutcome::kGivenUp);
  tree_->MoveLock(*lock.node, descendant);
  sessions_->MoveLock(lock, descendant);
}

void SessionHoldings::ReleaseLock(LockRecord& lock, LockEnd end) {
  uint32_t work = std::numeric_limits<uint32_t>::max();
  ReleaseLock(lock, end, work);
}

bool SessionHoldings::ReleaseLock(LockRecord& lock, LockEnd end,
                                  uint32_t& work) {
  const bool is_owner_lost =
      end == LockEnd::kSessionClosed || end == LockEnd::kSessionLost;
  pending_->End(lock.pending, is_owner_lost ? PendingOutcome::kOwnerLost
                                            : PendingOutcome::kGivenUp);
  Namespace& ns = *lock.node->ns;
  if (Node* const next = tree_->Unlock(*lock.node, work); next != nullptr) {
    lock.is_ending = true;
    sessions_->MoveLock(lock, *next);
    return false;
  }
  work -= std::min(work, 1u);
  journal_->NoteLockEnd(end, lock.taken_at);
  sessions_->RemoveLock(lock);
  tree_->Prune(ns);
  return true;
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
  End(*session, {.of_locks = LockEnd::kSessionClosed, .quarantined_until = {}});
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

void SessionHoldings::Expire(absl::Duration quarantine) {
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
      End(*session, {.of_locks = LockEnd::kSessionLost,
                     .quarantined_until = now + quarantine});
    } else {
      EndLost(*session);
    }
  }
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

void SessionHoldings::End(Session& session, const SessionEnd& end) {
  pending_->EndWaitsOf(session.id);
  sessions_->End(session, end);
}

bool SessionHoldings::EndStep() {
  uint32_t work = kStepReleases;
  while (work > 0) {
    Session* const session = sessions_->first_ended();
    if (session == nullptr) return false;
    if (!ReleaseLocks(*session, session->end->of_locks, work)) return true;
    if (const auto until = session->end->quarantined_until; until.has_value()) {
      QuarantineReserved(*session, *until);
    } else if (!FreeReserved(*session, work)) {
      return true;
    }
    NoteEnded(*session);
    sessions_->EraseFirstEnded();
    work -= std::min(work, 1u);
  }
  return sessions_->first_ended() != nullptr;
}

bool SessionHoldings::ReleaseLocks(Session& session, LockEnd end,
                                   uint32_t& work) {
  while (session.first_lock != nullptr) {
    if (work == 0 || !ReleaseLock(*session.first_lock, end, work)) return false;
  }
  return true;
}

bool SessionHoldings::FreeReserved(Session& session, uint32_t& work) {
  while (!session.reserved.pages.empty()) {
    if (work == 0) return false;
    --work;
    for (uint32_t i = 0; i < kPagesOfAUnit && !session.reserved.pages.empty();
         ++i) {
      pool_->Release(session.reserved, session.reserved.pages.back());
    }
  }
  return true;
}

void SessionHoldings::QuarantineReserved(Session& session, absl::Time until) {
  journal_->counters().quarantined_pages += session.reserved.pages.size();
  quarantine_.Add({.owner = session.id,
                   .number = session.number,
                   .client_name = session.client_name,
                   .writers = session.writers,
                   .since = journal_->time(),
                   .until = until,
                   .pages = pool_->Quarantine(session.reserved)});
}

void SessionHoldings::NoteEnded(const Session& session) {
  if (session.end->of_locks == LockEnd::kSessionClosed) {
    ++journal_->counters().sessions_closed;
    return;
  }
  ++journal_->counters().sessions_lost;
  expired_.lost.push_back(session.number);
  if (!session.end->quarantined_until.has_value()) {
    expired_.gone.push_back(session.id);
  }
}

}  // namespace pando
