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
  // If the page is still pending here, the insert has published another page in
  // its place.
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

SessionNumber SessionHoldings::Open(SessionId id, std::string client_name,
                                    bool is_internal) {
  ++journal_->counters().sessions_opened;
  return sessions_
      ->Open(id, std::move(client_name), journal_->time(), is_internal)
      .number;
}

void SessionHoldings::Close(SessionId id) {
  FreeBatches(quarantine_.TakeBatchesOf(id));
  sessions_->ForEachEnded([&](Session& ended) {
    if (ended.id == id && ended.end->quarantined_until.has_value()) {
      SkipQuarantine(ended);
    }
  });
  Session* session = sessions_->Find(id);
  if (session == nullptr) return;
  End(*session, {.of_locks = LockEnd::kSessionClosed, .quarantined_until = {}});
}

void SessionHoldings::SkipQuarantine(Session& ended) {
  ended.end->quarantined_until.reset();
  released_.push_back({std::exchange(ended.end->quarantined, {}), nullptr});
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
    sessions_->RemoveWriter(session, writer);
    // While its stream lives, the session lives, too, because another process
    // may use it.
    if (session.lost_at.has_value() && session.writers.AreGone()) {
      lost.push_back(&session);
    }
  });
  for (Session* session : lost) EndLost(*session);
  // Ended sessions whose pages are not in quarantine yet must know it, too.
  sessions_->ForEachEnded(
      [&](Session& session) { session.writers.Remove(writer); });
}

void SessionHoldings::Expire(absl::Duration quarantine) {
  const absl::Time now = journal_->time();
  FreeBatches(quarantine_.TakeReleasable(now));
  // The sessions end in a fixed order, because the order in which locks are
  // released decides what is evicted first.
  std::vector<Session*> lost;
  sessions_->ForEachSession([&](Session& session) {
    if (session.lost_at.has_value() && *session.lost_at <= now) {
      lost.push_back(&session);
    }
  });
  for (Session* session : lost) {
    if (session->writers.MayWrite() && session->holds_what_is_written()) {
      End(*session, {.of_locks = LockEnd::kSessionLost,
                     .quarantined_until = now + quarantine});
    } else {
      EndLost(*session);
    }
  }
}

uint32_t SessionHoldings::FreeQuarantine(SessionNumber number, uint32_t most) {
  Quarantine::Part part = quarantine_.TakePages(number, most);
  pool_->FreeQuarantined(part.pages);
  auto freed = static_cast<uint32_t>(part.pages.size());
  if (part.owner.has_value()) {
    expired_.gone.push_back(*part.owner);
    freed += part.blocks->locked + part.blocks->reserved;
    released_.push_back({{}, std::move(part.blocks)});
  }
  return freed;
}

void SessionHoldings::FreeBatches(std::vector<Quarantine::Batch> batches) {
  for (Quarantine::Batch& batch : batches) {
    released_.push_back({std::move(batch.pages), std::move(batch.blocks)});
    expired_.gone.push_back(batch.owner);
  }
}

void SessionHoldings::End(Session& session, const SessionEnd& end) {
  pending_->EndWaitsOf(session.id);
  sessions_->End(session, end);
}

bool SessionHoldings::EndStep() {
  uint32_t work = kStepReleases;
  if (!ReleaseFromQuarantine(work)) return true;
  while (work > 0) {
    Session* const session = sessions_->first_ended();
    if (session == nullptr) break;
    if (!ReleaseLocks(*session, session->end->of_locks, work)) return true;
    if (const auto until = session->end->quarantined_until; until.has_value()) {
      if (!QuarantineRest(*session, *until, work)) return true;
    } else if (!FreeReserved(*session, work) ||
               !ReleaseBlocks(*session, work)) {
      return true;
    }
    NoteEnded(*session);
    sessions_->EraseFirstEnded();
    work -= std::min(work, 1u);
  }
  if (blocks_->FreeEnded(work) || sessions_->first_ended() != nullptr) {
    return true;
  }
  blocks_->kinds().DeleteUnused();
  return false;
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

bool SessionHoldings::ReleaseBlocks(Session& session, uint32_t& work) {
  blocks_->kinds().CloseAll(session.blocks->kinds);
  return block_holds_->ReleaseAll(*session.blocks, work);
}

bool SessionHoldings::QuarantineRest(Session& session, absl::Time until,
                                     uint32_t& work) {
  std::vector<PageId>& quarantined = session.end->quarantined;
  if (quarantined.empty()) quarantined.reserve(session.reserved.pages.size());
  for (; !session.reserved.pages.empty(); --work) {
    if (work == 0) return false;
    pool_->Quarantine(session.reserved, kPagesOfAUnit, quarantined);
  }
  if (!block_holds_->DetachAll(*session.blocks, work)) return false;
  blocks_->kinds().CloseAll(session.blocks->kinds);
  journal_->counters().quarantined_pages += quarantined.size();
  quarantine_.Add({.owner = session.id,
                   .number = session.number,
                   .client_name = session.client_name,
                   .writers = session.writers,
                   .since = journal_->time(),
                   .until = until,
                   .pages = std::move(quarantined),
                   .blocks = std::move(session.blocks)});
  return true;
}

bool SessionHoldings::ReleaseFromQuarantine(uint32_t& work) {
  for (; !released_.empty(); released_.pop_front()) {
    Released& next = released_.front();
    if (work == 0 || !FreeQuarantined(next.pages, work) ||
        (next.blocks != nullptr &&
         !block_holds_->ReleaseAll(*next.blocks, work))) {
      return false;
    }
    work -= std::min(work, 1u);
  }
  return true;
}

bool SessionHoldings::FreeQuarantined(std::vector<PageId>& pages,
                                      uint32_t& work) {
  for (; !pages.empty(); --work) {
    if (work == 0) return false;
    const size_t kept =
        pages.size() - std::min<size_t>(pages.size(), kPagesOfAUnit);
    pool_->FreeQuarantined(std::span(pages).subspan(kept));
    pages.resize(kept);
  }
  return true;
}

Quarantine::BlockCounts SessionHoldings::released_counts() const {
  Quarantine::BlockCounts counts;
  for (const Released& each : released_) {
    if (each.blocks == nullptr) continue;
    counts.locked += each.blocks->locked;
    counts.reserved += each.blocks->reserved;
  }
  return counts;
}

size_t SessionHoldings::quarantined_elsewhere() const {
  size_t pages = 0;
  for (const Released& each : released_) pages += each.pages.size();
  sessions_->ForEachEnded([&](const Session& session) {
    pages += session.end->quarantined.size();
  });
  return pages;
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
