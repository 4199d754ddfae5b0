// The parts of ReferenceCache for sessions, locks and accounts.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"
#include "tests/core/reference_cache.h"

namespace pando {

void ReferenceCache::OpenSession(SessionId id) {
  ++counters_.sessions_opened;
  Session& session = sessions_.emplace_back();
  session.id = id;
  session.number =
      SessionNumber(static_cast<uint32_t>(counters_.sessions_opened));
}

absl::Status ReferenceCache::AttachSession(SessionId id,
                                           std::optional<WriterId> writer) {
  Session* session = FindSession(id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  session->is_attached = true;
  if (writer.has_value()) {
    session->writers.insert(writer->value());
  } else {
    session->has_unwatched = true;
  }
  return absl::OkStatus();
}

void ReferenceCache::CloseSession(SessionId id) {
  std::erase_if(quarantine_, [&](auto& batch) { return batch.owner == id; });
  if (!IsLive(id)) return;
  EraseSession(id);
  ++counters_.sessions_closed;
}

void ReferenceCache::SuspendSession(SessionId id, absl::Time lost_at) {
  Session* session = FindSession(id);
  if (session == nullptr) return;
  session->lost_at = lost_at;
  if (AreWritersGone(*session)) EndLost(id);
}

absl::Status ReferenceCache::ResumeSession(SessionId id) {
  Session* session = FindSession(id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  session->lost_at.reset();
  return absl::OkStatus();
}

bool ReferenceCache::AreWritersGone(const Session& session) {
  return session.is_attached && session.writers.empty() &&
         !session.has_unwatched;
}

void ReferenceCache::WriterGone(WriterId writer) {
  for (auto& batch : quarantine_) batch.writers.erase(writer.value());
  FreeQuarantinedInTime();
  std::vector<SessionId> lost;
  for (Session& session : sessions_) {
    session.writers.erase(writer.value());
    if (session.lost_at.has_value() && AreWritersGone(session)) {
      lost.push_back(session.id);
    }
  }
  for (SessionId id : lost) EndLost(id);
}

void ReferenceCache::FreeQuarantinedInTime() {
  std::erase_if(quarantine_, [&](auto& batch) {
    return batch.writers.empty() &&
           (!batch.has_unwatched || batch.until <= time_);
  });
}

absl::StatusOr<uint32_t> ReferenceCache::FreeQuarantine(SessionNumber number) {
  const auto batch =
      std::find_if(quarantine_.begin(), quarantine_.end(),
                   [&](auto& each) { return each.number == number; });
  if (batch == quarantine_.end()) return MakeError(Reason::kSessionLost, "");
  const auto pages = static_cast<uint32_t>(batch->pages.size());
  quarantine_.erase(batch);
  return pages;
}

void ReferenceCache::EndLost(SessionId id) {
  EraseSession(id);
  ++counters_.sessions_lost;
}

void ReferenceCache::ExpireSessions(absl::Time now, absl::Duration quarantine) {
  time_ = now;
  FreeQuarantinedInTime();
  std::vector<SessionId> lost;
  for (const Session& session : sessions_) {
    if (session.lost_at.has_value() && *session.lost_at <= now) {
      lost.push_back(session.id);
    }
  }
  for (SessionId id : lost) {
    const Session& session = *FindSession(id);
    const bool may_write = session.has_unwatched || !session.writers.empty();
    if (may_write && !session.reserved.empty()) {
      quarantine_.push_back({id, session.number, session.has_unwatched,
                             session.writers, now + quarantine,
                             session.reserved});
      counters_.quarantined_pages += session.reserved.size();
    }
    EndLost(id);
  }
}

CacheStats ReferenceCache::Stats() const {
  CacheStats stats;
  stats.counters = counters_;
  if (reuse_.has_value()) stats.reuse = reuse_->Stats();
  stats.eviction_policy = policy_;
  stats.waits = static_cast<uint32_t>(flights_.waiting());
  stats.pages.capacity = options_.capacity_pages;
  stats.pages.padding = 1;
  stats.pages.free = FreeCount();
  stats.pages.reserved = ReservedCount();
  stats.pages.quarantined = QuarantinedCount();
  for (const auto& batch : quarantine_) {
    if (batch.writers.empty()) continue;
    stats.held_pages += static_cast<uint32_t>(batch.pages.size());
  }
  stats.pages.protected_ = LockedCount();
  stats.pages.evictable = CachedCount() - LockedCount();
  stats.sessions = static_cast<uint32_t>(sessions_.size());
  for (const Session& session : sessions_) {
    stats.locks += static_cast<uint32_t>(session.locks.size());
    stats.kept_bytes += KeptBytes(session);
  }
  for (const auto& [ns, pages] : index_.namespaces()) {
    const bool is_locked = std::any_of(
        sessions_.begin(), sessions_.end(), [&ns = ns](const Session& session) {
          return std::any_of(session.locks.begin(), session.locks.end(),
                             [&](auto& lock) { return lock.place.ns == ns; });
        });
    if (!pages.empty() || is_locked) ++stats.namespaces;
    for (const auto& [prefix, page] : pages) {
      stats.nodes += page.node.has_value();
    }
  }
  if (options_.quota_classes.empty()) return stats;
  for (size_t c = 0; c < quota_.classes().size(); ++c) {
    const QuotaClass& quota = quota_.classes()[c];
    const Account account = AccountOf(c);
    const auto spared = spared_leaves_.find(c);
    stats.quota_classes.push_back(
        {quota.name, quota.floor_pages, quota.cap_pages, account.reserved,
         account.cached, quota.max_retention_seconds,
         spared == spared_leaves_.end() ? 0 : spared->second});
  }
  return stats;
}

EvictionPolicyKind ReferenceCache::SetEvictionPolicy(
    EvictionPolicyKind policy) {
  return std::exchange(policy_, policy);
}

void ReferenceCache::SetLearning(bool learns) {
  if (learns == reuse_.has_value()) return;
  if (learns) {
    reuse_.emplace(&index_, page_tokens(), options_.capacity_pages - 1,
                   options_.reuse.warmup_ticks, next_tick_);
  } else {
    next_tick_ = reuse_->tick() + 1;
    reuse_.reset();
  }
}

RequestFacts ReferenceCache::BeginRequest(size_t prompt_tokens,
                                          size_t cached_tokens) {
  if (!reuse_.has_value()) return {};
  return reuse_->BeginRequest(prompt_tokens, cached_tokens);
}

void ReferenceCache::Touch(const Place& place, RequestFacts* facts) {
  index_.Touch(place);
  if (reuse_.has_value()) reuse_->Use(place, facts);
}

std::vector<PageId> ReferenceCache::ReservedPages(SessionId id) const {
  std::vector<PageId> pages;
  const Session* session = FindSession(id);
  if (session == nullptr) return pages;
  for (const ReservedPage& page : session->reserved) pages.push_back(page.id);
  return pages;
}

std::vector<LockId> ReferenceCache::LocksOf(SessionId id) const {
  std::vector<LockId> locks;
  const Session* session = FindSession(id);
  if (session == nullptr) return locks;
  for (const HeldLock& lock : session->locks) locks.push_back(lock.id);
  return locks;
}

std::vector<Token> ReferenceCache::HeldPrompt(LockId id) const {
  const HeldLock* lock = FindLock(id);
  return lock == nullptr ? std::vector<Token>() : lock->prompt;
}

std::vector<PageId> ReferenceCache::CachedPages(
    Place place, std::span<const Token> tokens) const {
  return index_.Extend(place, UnitsOf(place.ns, tokens), tokens.size());
}

std::optional<NamespaceKey> ReferenceCache::NamespaceOf(
    const PrefixHandle& handle) const {
  const std::optional<Place> place = index_.PlaceOf(handle);
  if (!place.has_value()) return std::nullopt;
  return place->ns;
}

Place ReferenceCache::StartOf(const NamespaceKey& ns, LockId lock,
                              const PrefixHandle& after) const {
  const HeldLock* anchor = FindLock(lock);
  if (anchor != nullptr) return anchor->place;
  return Start(ns, after).value_or(Place{ns, {}});
}

const ReferenceCache::Session* ReferenceCache::FindSession(SessionId id) const {
  const auto it = std::find_if(sessions_.begin(), sessions_.end(),
                               [&](auto& s) { return s.id == id; });
  return it == sessions_.end() ? nullptr : &*it;
}

ReferenceCache::Session* ReferenceCache::FindSession(SessionId id) {
  return const_cast<Session*>(std::as_const(*this).FindSession(id));
}

const ReferenceCache::HeldLock* ReferenceCache::FindLock(LockId id) const {
  for (const Session& session : sessions_) {
    for (const HeldLock& lock : session.locks) {
      if (lock.id == id) return &lock;
    }
  }
  return nullptr;
}

ReferenceCache::HeldLock* ReferenceCache::FindLock(Session& session,
                                                   LockId id) {
  const auto it = std::find_if(session.locks.begin(), session.locks.end(),
                               [&](auto& lock) { return lock.id == id; });
  return it == session.locks.end() ? nullptr : &*it;
}

uint32_t ReferenceCache::CachedCount() const {
  size_t count = 0;
  for (const auto& [ns, pages] : index_.namespaces()) count += pages.size();
  return static_cast<uint32_t>(count);
}

uint32_t ReferenceCache::LockedCount() const {
  uint32_t count = 0;
  for (const auto& [ns, pages] : index_.namespaces()) {
    for (const auto& [prefix, page] : pages) count += page.locks > 0;
  }
  return count;
}

uint32_t ReferenceCache::QuarantinedCount() const {
  size_t count = 0;
  for (const auto& batch : quarantine_) count += batch.pages.size();
  return static_cast<uint32_t>(count);
}

uint32_t ReferenceCache::ReservedCount() const {
  size_t count = 0;
  for (const auto& session : sessions_) count += session.reserved.size();
  return static_cast<uint32_t>(count);
}

uint32_t ReferenceCache::FreeCount() const {
  return options_.capacity_pages - 1 - CachedCount() - ReservedCount() -
         QuarantinedCount();
}

bool ReferenceCache::IsFree(PageId id) const {
  if (id == kPaddingPage || id.value() >= options_.capacity_pages) return false;
  const auto holds = [id](const auto& pages) {
    return std::any_of(pages.begin(), pages.end(),
                       [id](const auto& page) { return page.id == id; });
  };
  for (const auto& session : sessions_) {
    if (holds(session.reserved)) return false;
  }
  for (const auto& batch : quarantine_) {
    if (holds(batch.pages)) return false;
  }
  for (const auto& [ns, pages] : index_.namespaces()) {
    for (const auto& [prefix, page] : pages) {
      if (page.id == id) return false;
    }
  }
  return true;
}

absl::Status ReferenceCache::AddLock(Session& session, const Place& place,
                                     LockId id) {
  if (id == LockId() || FindLock(id) != nullptr) {
    return absl::InternalError(
        absl::StrCat("lock id ", id.value(), " is 0 or in use"));
  }
  session.locks.push_back({id, place});
  index_.Lock(place);
  ++counters_.locks_taken;
  return absl::OkStatus();
}

void ReferenceCache::ReleaseLock(Session& session, LockId id,
                                 PendingOutcome outcome) {
  Resolve(id, outcome);
  const Place place = FindLock(session, id)->place;
  index_.Unlock(place);
  if (reuse_.has_value()) reuse_->UseUnlocked(place);
  std::erase_if(session.locks, [&](auto& lock) { return lock.id == id; });
  ++counters_.locks_released;
}

bool ReferenceCache::CancelWait(WaitId wait) {
  const bool is_waiting = flights_.CancelWait(wait);
  counters_.pending_waits_timed_out += is_waiting;
  return is_waiting;
}

void ReferenceCache::Resolve(LockId owner, PendingOutcome outcome) {
  const size_t ended = flights_.Resolve(owner, outcome);
  (outcome == PendingOutcome::kPublished ? counters_.pending_waits_published
                                         : counters_.pending_waits_given_up) +=
      ended;
}

// Releases the locks from the newest to the oldest.
void ReferenceCache::EraseSession(SessionId id) {
  Session& session = *FindSession(id);
  counters_.pending_waits_given_up += flights_.EndWaitsOf(id);
  while (!session.locks.empty()) {
    ReleaseLock(session, session.locks.back().id, PendingOutcome::kOwnerLost);
  }
  std::erase_if(sessions_, [&](auto& s) { return s.id == id; });
}

absl::StatusOr<const ReferenceCache::Answer*> ReferenceCache::FindAnswer(
    const Session& session, RequestId id, Call call) {
  if (id == RequestId()) return nullptr;
  for (const Answer& answer : session.answers) {
    if (answer.id != id) continue;
    if (answer.call != call) return MakeError(Reason::kRequestIdReused, "");
    ++counters_.repeated_requests;
    return &answer;
  }
  return nullptr;
}

size_t ReferenceCache::KeptBytes(const Session& session) {
  size_t bytes = 0;
  for (const HeldLock& lock : session.locks) {
    bytes += lock.held_tokens * sizeof(Token);
  }
  for (const Answer& answer : session.answers) {
    bytes += Answers::kAnswerBytes;
    if (const auto* match = std::get_if<MatchResult>(&answer.result)) {
      bytes += (match->pages.size() + match->reserved.size()) * sizeof(PageId);
    } else if (const auto* insert = std::get_if<InsertResult>(&answer.result)) {
      bytes += insert->canonical_pages.size() * sizeof(PageId);
    } else if (const auto* more = std::get_if<AllocateResult>(&answer.result)) {
      bytes += more->pages.size() * sizeof(PageId);
    }
  }
  return bytes;
}

void ReferenceCache::KeepAnswer(Session& session, RequestId id, Call call,
                                Result result) {
  if (id == RequestId()) return;
  session.answers.push_back({id, call, std::move(result)});
  if (session.answers.size() > kKeptAnswers) session.answers.pop_front();
}

}  // namespace pando
