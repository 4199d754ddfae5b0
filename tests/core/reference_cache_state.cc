// Sessions, locks and accounts of ReferenceCache.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/errors.h"
#include "tests/core/reference_cache.h"

namespace pando {

bool ReferenceCache::StartsWith(const Prefix& tokens, const Prefix& prefix) {
  return tokens.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), tokens.begin());
}

void ReferenceCache::OpenSession(SessionId id) {
  sessions_.emplace_back().id = id;
  ++counters_.sessions_opened;
}

absl::Status ReferenceCache::AttachSession(SessionId id) {
  Session* session = FindSession(id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  session->is_attached = true;
  session->is_process_gone = false;
  return absl::OkStatus();
}

void ReferenceCache::CloseSession(SessionId id) {
  if (!IsLive(id)) return;
  EraseSession(id);
  ++counters_.sessions_closed;
}

void ReferenceCache::SuspendSession(SessionId id, absl::Time lost_at) {
  Session* session = FindSession(id);
  if (session == nullptr) return;
  session->lost_at = lost_at;
  if (session->is_process_gone) EndLost(id);
}

absl::Status ReferenceCache::ResumeSession(SessionId id) {
  Session* session = FindSession(id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  session->lost_at.reset();
  return absl::OkStatus();
}

void ReferenceCache::ProcessGone(SessionId id) {
  std::erase_if(quarantine_, [&](auto& batch) { return batch.owner == id; });
  Session* session = FindSession(id);
  if (session == nullptr) return;
  session->is_process_gone = true;
  if (session->lost_at.has_value()) EndLost(id);
}

void ReferenceCache::EndLost(SessionId id) {
  EraseSession(id);
  ++counters_.sessions_lost;
}

void ReferenceCache::ExpireSessions(absl::Time now, absl::Duration quarantine) {
  std::erase_if(quarantine_, [&](auto& batch) { return batch.until <= now; });
  std::vector<SessionId> lost;
  for (const Session& session : sessions_) {
    if (session.lost_at.has_value() && *session.lost_at <= now) {
      lost.push_back(session.id);
    }
  }
  for (SessionId id : lost) {
    const Session& session = *FindSession(id);
    if (session.is_attached) {
      quarantine_.push_back({id, now + quarantine, session.reserved});
      counters_.quarantined_pages += session.reserved.size();
    }
    EndLost(id);
  }
}

CacheStats ReferenceCache::Stats() const {
  CacheStats stats;
  stats.counters = counters_;
  stats.pages.capacity = options_.capacity_pages;
  stats.pages.padding = 1;
  stats.pages.free = FreeCount();
  stats.pages.reserved = ReservedCount();
  stats.pages.quarantined = QuarantinedCount();
  stats.pages.protected_ = LockedCount();
  stats.pages.evictable = CachedCount() - LockedCount();
  stats.sessions = static_cast<uint32_t>(sessions_.size());
  for (const Session& session : sessions_) {
    stats.locks += static_cast<uint32_t>(session.locks.size());
  }
  for (const auto& [ns, pages] : namespaces_) {
    const bool is_locked = std::any_of(
        sessions_.begin(), sessions_.end(), [&ns = ns](const Session& session) {
          return std::any_of(session.locks.begin(), session.locks.end(),
                             [&](auto& lock) { return lock.place.ns == ns; });
        });
    if (!pages.empty() || is_locked) ++stats.namespaces;
    for (const auto& [prefix, page] : pages) stats.nodes += page.ends_node;
  }
  return stats;
}

std::vector<PageId> ReferenceCache::ReservedPages(SessionId id) const {
  const Session* session = FindSession(id);
  return session == nullptr ? std::vector<PageId>() : session->reserved;
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
    const NamespaceKey& ns, LockId lock, std::span<const Token> tokens) const {
  const HeldLock* anchor = FindLock(lock);
  Place place = anchor != nullptr ? anchor->place : Place{ns, {}};
  return Extend(place, tokens, tokens.size());
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

const ReferenceCache::Pages* ReferenceCache::FindPages(
    const NamespaceKey& ns) const {
  for (const auto& [key, pages] : namespaces_) {
    if (key == ns) return &pages;
  }
  return nullptr;
}

ReferenceCache::Pages& ReferenceCache::PagesOf(const NamespaceKey& ns) {
  if (FindPages(ns) == nullptr) namespaces_.emplace_back(ns, Pages());
  return const_cast<Pages&>(*FindPages(ns));
}

uint32_t ReferenceCache::CachedCount() const {
  size_t count = 0;
  for (const auto& [ns, pages] : namespaces_) count += pages.size();
  return static_cast<uint32_t>(count);
}

uint32_t ReferenceCache::LockedCount() const {
  uint32_t count = 0;
  for (const auto& [ns, pages] : namespaces_) {
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
    return std::find(pages.begin(), pages.end(), id) != pages.end();
  };
  for (const auto& session : sessions_) {
    if (holds(session.reserved)) return false;
  }
  for (const auto& batch : quarantine_) {
    if (holds(batch.pages)) return false;
  }
  for (const auto& [ns, pages] : namespaces_) {
    for (const auto& [prefix, page] : pages) {
      if (page.id == id) return false;
    }
  }
  return true;
}

std::vector<PageId> ReferenceCache::Extend(Place& start,
                                           std::span<const Token> tokens,
                                           size_t max_pages) const {
  std::vector<PageId> found;
  const Pages* pages = FindPages(start.ns);
  if (pages == nullptr) return found;
  max_pages = std::min(max_pages, tokens.size() / page_tokens());
  for (size_t i = 0; i < max_pages; ++i) {
    const auto page = tokens.subspan(i * page_tokens(), page_tokens());
    Prefix longer = start.prefix;
    longer.insert(longer.end(), page.begin(), page.end());
    const auto it = pages->find(longer);
    if (it == pages->end()) break;
    found.push_back(it->second.id);
    start.prefix = std::move(longer);
  }
  return found;
}

std::vector<ReferenceCache::CachedPage*> ReferenceCache::PathTo(
    const Place& place) {
  std::vector<CachedPage*> path;
  Prefix prefix;
  for (const Token token : place.prefix) {
    prefix.push_back(token);
    if (prefix.size() % page_tokens() == 0) {
      path.push_back(&PagesOf(place.ns).at(prefix));
    }
  }
  return path;
}

void ReferenceCache::Touch(const Place& place) {
  ++now_;
  for (CachedPage* page : PathTo(place)) page->last_access = now_;
}

void ReferenceCache::EndNodeAt(const Place& place) {
  if (!place.prefix.empty()) {
    PagesOf(place.ns).at(place.prefix).ends_node = true;
  }
}

void ReferenceCache::DropPartialNode(Place& place) {
  while (!place.prefix.empty() &&
         !PagesOf(place.ns).at(place.prefix).ends_node) {
    place.prefix.resize(place.prefix.size() - page_tokens());
  }
}

absl::Status ReferenceCache::CheckOwned(const Session& session,
                                        std::span<const PageId> pages) const {
  for (size_t i = 0; i < pages.size(); ++i) {
    const PageId page = pages[i];
    if (page == kPaddingPage || page.value() >= options_.capacity_pages) {
      return MakeError(Reason::kPageOutOfRange, "");
    }
    if (std::find(session.reserved.begin(), session.reserved.end(), page) ==
        session.reserved.end()) {
      return MakeError(Reason::kPageNotOwned, "");
    }
    const auto before = pages.first(i);
    if (std::find(before.begin(), before.end(), page) != before.end()) {
      return MakeError(Reason::kDuplicatePage, "");
    }
  }
  return absl::OkStatus();
}

absl::Status ReferenceCache::CheckRoom(uint32_t pages, uint32_t held_back) {
  const uint32_t evictable = CachedCount() - LockedCount() - held_back;
  if (pages <= FreeCount() + evictable) return absl::OkStatus();
  ++counters_.allocation_failures;
  return MakeError(Reason::kPoolExhausted, "");
}

absl::Status ReferenceCache::TakePages(Session& session, uint32_t pages,
                                       const Choice& choice) {
  while (FreeCount() < pages && EvictOne()) {
    ++counters_.evicted_pages_for_allocation;
  }
  if (choice.pages.size() != pages) {
    return absl::InternalError(absl::StrCat(
        choice.pages.size(), " pages given, but ", pages, " wanted"));
  }
  for (PageId page : choice.pages) {
    if (!IsFree(page)) {
      return absl::InternalError(
          absl::StrCat("page ", page.value(), " was given, but is not free"));
    }
    session.reserved.push_back(page);
  }
  counters_.allocated_pages += pages;
  return absl::OkStatus();
}

absl::Status ReferenceCache::AddLock(Session& session, const Place& place,
                                     LockId id) {
  if (id == LockId() || FindLock(id) != nullptr) {
    return absl::InternalError(
        absl::StrCat("lock id ", id.value(), " is 0 or in use"));
  }
  session.locks.push_back({id, place});
  PagesOf(place.ns);
  for (CachedPage* page : PathTo(place)) ++page->locks;
  ++counters_.locks_taken;
  return absl::OkStatus();
}

void ReferenceCache::MoveLock(HeldLock& lock, const Place& to) {
  for (CachedPage* page : PathTo(lock.place)) --page->locks;
  for (CachedPage* page : PathTo(to)) ++page->locks;
  lock.place = to;
}

// What becomes unlocked counts as used just now.
void ReferenceCache::ReleaseLock(Session& session, LockId id) {
  ++now_;
  for (CachedPage* page : PathTo(FindLock(session, id)->place)) {
    if (--page->locks == 0) page->last_access = now_;
  }
  std::erase_if(session.locks, [&](auto& lock) { return lock.id == id; });
  ++counters_.locks_released;
}

void ReferenceCache::Release(Session& session, PageId page) {
  std::erase(session.reserved, page);
}

// The locks go newest first.
void ReferenceCache::EraseSession(SessionId id) {
  Session& session = *FindSession(id);
  while (!session.locks.empty()) {
    ReleaseLock(session, session.locks.back().id);
  }
  std::erase_if(sessions_, [&](auto& s) { return s.id == id; });
}

}  // namespace pando
