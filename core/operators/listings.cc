#include "core/operators/listings.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

NamespaceInfo InfoOf(const Namespace& ns) {
  return {.number = ns.number,
          .extra_key = ns.key->extra_key,
          .has_cache_salt = ns.key->cache_salt.has_value(),
          .bigram = ns.key->bigram,
          .evictable_pages = ns.evictable_pages,
          .protected_pages = ns.protected_pages,
          .nodes = ns.nodes};
}

SessionInfo InfoOf(const Session& session, absl::Time now) {
  return {
      .number = session.number,
      .client_name = session.client_name,
      .locks = session.lock_count,
      .reserved_pages = static_cast<uint32_t>(session.reserved.pages.size()),
      .age = now - session.opened_at,
      .is_connected = !session.lost_at.has_value(),
      .is_attached = session.writers.has_mapped(),
      .is_internal = session.is_internal,
      .locked_blocks = session.blocks->locked,
      .reserved_blocks = session.blocks->reserved,
      .steps = session.steps};
}

QuarantineInfo InfoOf(const Quarantine::Batch& batch, absl::Time now) {
  return {.number = batch.number,
          .client_name = batch.client_name,
          .pages = static_cast<uint32_t>(batch.pages.size()),
          .age = now - batch.since,
          .writers = batch.writers.living(),
          .has_unwatched = batch.writers.has_unwatched(),
          .locked_blocks = batch.blocks->locked,
          .reserved_blocks = batch.blocks->reserved};
}

}  // namespace

ReuseStats ReuseStatsOf(const ReuseLearner& learner) {
  const ShadowLru& shadow = learner.shadow();
  ReuseStats stats{
      .requested_pages = shadow.requested(),
      .hit_pages = shadow.hits_of_cache(),
      .lru_hit_pages = shadow.hits(),
      .gained_pages = shadow.gain(),
      .debt_pages = shadow.debt(),
      .debt_limit_pages = static_cast<uint64_t>(shadow.debt_limit()),
      .ghost_hit_pages = learner.ghost_hits(),
      .ghosts = learner.ghosts().count()};
  for (uint32_t level = 0; level < kUsesLevels; ++level) {
    stats.chance_by_uses[level] = learner.tables().ChanceByUses(level);
  }
  return stats;
}

CacheStats StatsOf(const CacheParts& parts) {
  const RadixTree& tree = parts.tree;
  const PagePool& pool = parts.pool;
  CacheStats stats;
  stats.pages.free = pool.count(PageState::kFree);
  stats.pages.reserved = pool.count(PageState::kReserved);
  stats.pages.evictable = tree.evictable_pages();
  stats.pages.protected_ = tree.protected_pages();
  stats.pages.quarantined = pool.count(PageState::kQuarantined);
  stats.pages.padding = pool.count(PageState::kPadding);
  stats.pages.capacity = pool.capacity();
  stats.counters = parts.journal.counters();
  const PendingPages::Counts& waits = parts.pending.counts();
  stats.counters.pending_waits = waits.waits;
  stats.counters.pending_waits_published = waits.published;
  stats.counters.pending_waits_given_up = waits.given_up;
  stats.counters.pending_waits_timed_out = waits.timed_out;
  stats.sessions = parts.sessions.session_count();
  stats.locks = parts.sessions.lock_count();
  stats.nodes = tree.node_count();
  stats.namespaces = tree.namespace_count();
  stats.kept_bytes = parts.sessions.kept_bytes();
  stats.waits = parts.pending.wait_count();
  stats.held_pages = parts.holdings.quarantine().held_page_count();
  stats.eviction_policy = tree.policy();
  if (tree.learner() != nullptr) stats.reuse = ReuseStatsOf(*tree.learner());
  if (const LockRecord* oldest = parts.sessions.oldest_lock();
      oldest != nullptr) {
    stats.oldest_lock_age = parts.journal.time() - oldest->taken_at;
  }
  stats.measured = parts.journal.measured();
  if (!parts.quota_classes.are_configured()) return stats;
  for (uint32_t c = 0; c < parts.quota_classes.count(); ++c) {
    stats.quota_classes.push_back(
        {.name = parts.quota_classes.name(c),
         .floor_pages = parts.budget.limits(c).floor_pages,
         .cap_pages = parts.budget.limits(c).cap_pages,
         .reserved_pages = pool.reserved_count(c),
         .cached_pages = tree.cached_pages(c),
         .max_retention_seconds = parts.budget.limits(c).max_retention_seconds,
         .spared_leaves = tree.spared_leaves(c)});
  }
  return stats;
}

bool NamespaceListing::IsLarger::operator()(const NamespaceInfo& a,
                                            const NamespaceInfo& b) const {
  const uint32_t a_pages = a.evictable_pages + a.protected_pages;
  const uint32_t b_pages = b.evictable_pages + b.protected_pages;
  if (a_pages != b_pages) return a_pages > b_pages;
  return a.number < b.number;
}

bool NamespaceListing::Step(CacheParts& parts) {
  for (uint32_t i = 0; i < kStepEntries; ++i) {
    const Namespace* ns = parts.tree.NamespaceAfter(last_);
    if (ns == nullptr) return true;
    last_ = ns->number;
    largest_.Add(InfoOf(*ns));
  }
  return false;
}

NamespaceList NamespaceListing::Take() {
  return {.namespaces = largest_.Take(), .total = largest_.seen()};
}

bool SessionListing::Step(CacheParts& parts) {
  list_.total = parts.sessions.session_count();
  for (uint32_t i = 0; i < kStepEntries; ++i) {
    if (list_.sessions.size() == limit_) return true;
    const Session* session = parts.sessions.SessionAfter(last_);
    if (session == nullptr) return true;
    last_ = session->number;
    list_.sessions.push_back(InfoOf(*session, parts.journal.time()));
  }
  return false;
}

bool QuarantineListing::Step(CacheParts& parts) {
  const Quarantine& quarantine = parts.holdings.quarantine();
  list_.total = quarantine.batch_count();
  for (uint32_t i = 0; i < kStepEntries; ++i) {
    if (list_.sessions.size() == limit_) return true;
    const Quarantine::Batch* batch = quarantine.BatchAfter(last_);
    if (batch == nullptr) return true;
    last_ = batch->number;
    list_.sessions.push_back(InfoOf(*batch, parts.journal.time()));
  }
  return false;
}

void OldestLocks::Add(const CacheParts& parts, const LockRecord& lock,
                      uint32_t pages) {
  oldest_.Add({.taken_at = lock.taken_at,
               .id = SessionTable::IdOf(lock),
               .info = {.session = lock.session->number,
                        .client_name = lock.session->client_name,
                        .locked_tokens = pages * parts.page_tokens(),
                        .age = parts.journal.time() - lock.taken_at,
                        .ns = lock.node->ns->number,
                        .node = lock.node->id}});
}

LockList OldestLocks::Take() {
  LockList list{.locks = {}, .total = oldest_.seen()};
  for (Entry& entry : oldest_.Take())
    list.locks.push_back(std::move(entry.info));
  return list;
}

bool LockListing::Step(CacheParts& parts) {
  const uint32_t cells = parts.sessions.lock_cells();
  for (uint32_t i = 0; i < kStepCells && next_ < cells; ++i) {
    const LockRecord* lock = parts.sessions.LockAt(next_++);
    if (lock == nullptr) continue;
    if (session_.has_value() && lock->session->number != *session_) continue;
    oldest_.Add(parts, *lock, lock->node->end_pages());
  }
  return next_ == cells;
}

bool LockRelease::Step(CacheParts& parts) {
  Session* session = parts.sessions.Find(session_);
  if (session == nullptr) return true;
  is_known_ = true;
  parts.sessions.BeginChange(*session);
  for (uint32_t work = kStepReleases; work > 0;) {
    if (session->first_lock == nullptr) return true;
    released_ += parts.holdings.ReleaseLock(*session->first_lock,
                                            LockEnd::kOperator, work);
  }
  return session->first_lock == nullptr;
}

bool QuarantineRelease::Step(CacheParts& parts) {
  const uint32_t freed =
      parts.holdings.FreeQuarantine(session_, kStepFreedPages);
  freed_ += freed;
  return freed < kStepFreedPages;
}

absl::StatusOr<uint32_t> QuarantineRelease::result() const {
  if (freed_ > 0) return freed_;
  return MakeError(
      Reason::kSessionLost, Subject::kSessionNumber,
      absl::StrCat(
          session_.value(),
          " is not the number of a lost session with pages in quarantine"));
}

absl::StatusOr<uint32_t> LockRelease::result() const {
  if (is_known_) return released_;
  return MakeError(
      Reason::kSessionLost, Subject::kSessionNumber,
      absl::StrCat(session_.value(),
                   " is not the number of a session that is open"));
}

}  // namespace pando
