// The data path of ReferenceCache, in the order of PrefixCache's.
// reference_cache_state.cc has sessions and what both share.

#include "tests/core/reference_cache.h"

#include <algorithm>

#include "core/errors.h"

namespace pando {

absl::StatusOr<MatchResult> ReferenceCache::Match(const MatchRequest& request,
                                                  const Choice& choice) {
  if (request.reserve_tokens > 0 && !request.lock) {
    return MakeError(Reason::kInvalidField, "reserve without lock");
  }
  Session* session = FindSession(request.session);
  if (request.lock && session == nullptr) {
    return MakeError(Reason::kSessionLost, "");
  }
  const size_t cap = request.max_tokens.value_or(UINT32_MAX);
  Place place{request.ns, {}};
  MatchResult result;
  result.pages = Extend(place, request.tokens, cap / page_tokens());
  result.matched_tokens = static_cast<uint32_t>(place.prefix.size());

  uint32_t missing = 0;
  for (uint64_t token = result.matched_tokens; token < request.reserve_tokens;
       token += page_tokens()) {
    ++missing;
  }
  const auto path = PathTo(place);
  const auto held_back = std::count_if(
      path.begin(), path.end(), [](CachedPage* p) { return p->locks == 0; });
  if (absl::Status room = CheckRoom(missing, static_cast<uint32_t>(held_back));
      !room.ok()) {
    return room;
  }

  if (request.lock) {
    EndNodeAt(place);
    if (request.touch) Touch(place);
    if (absl::Status added = AddLock(*session, place, choice.lock);
        !added.ok()) {
      return added;
    }
    if (absl::Status taken = TakePages(*session, missing, choice);
        !taken.ok()) {
      return taken;
    }
    if (request.reserve_tokens > result.matched_tokens) {
      const auto rest = request.tokens.subspan(result.matched_tokens);
      const size_t room = request.reserve_tokens - result.matched_tokens;
      session->locks.back().prompt.assign(
          rest.begin(), rest.begin() + std::min(rest.size(), room));
    }
    result.lock = choice.lock;
    result.reserved = choice.pages;
  } else if (request.touch) {
    DropPartialNode(place);
    Touch(place);
  }
  ++counters_.matches;
  if (request.touch) {
    counters_.query_tokens +=
        request.tokens.size() / page_tokens() * page_tokens();
    counters_.hit_tokens += result.matched_tokens;
  }
  return result;
}

absl::StatusOr<InsertResult> ReferenceCache::Insert(
    const InsertRequest& request) {
  const size_t page_count =
      (request.prompt_tokens + request.tokens.size()) / page_tokens();
  const bool is_anchored = request.anchor != LockId();
  if (!is_anchored &&
      (request.lock_action != LockAction::kKeep || request.prompt_tokens > 0)) {
    return MakeError(Reason::kInvalidField, "");
  }
  Session* session = FindSession(request.session);
  Place place{request.ns, {}};
  HeldLock* lock = nullptr;
  std::vector<Token> tokens;
  if (is_anchored) {
    if (session == nullptr) return MakeError(Reason::kSessionLost, "");
    lock = FindLock(*session, request.anchor);
    if (lock == nullptr) return MakeError(Reason::kLockUnknown, "");
    if (request.prompt_tokens > lock->prompt.size()) {
      return MakeError(Reason::kInvalidField, "");
    }
    tokens = lock->prompt;
    tokens.resize(request.prompt_tokens);
    place = lock->place;
  }
  if (request.pages.size() != page_count) {
    return MakeError(Reason::kInvalidAlignment, "");
  }
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  if (is_anchored && request.ns != NamespaceKey() && request.ns != place.ns) {
    return MakeError(Reason::kNamespaceMismatch, "");
  }
  tokens.insert(tokens.end(), request.tokens.begin(), request.tokens.end());
  InsertResult result;
  result.canonical_pages = Extend(place, tokens, page_count);
  const size_t existing = result.canonical_pages.size();
  std::vector<PageId> own;
  for (size_t i = 0; i < page_count; ++i) {
    const bool is_canonical =
        i < existing && request.pages[i] == result.canonical_pages[i];
    if (!is_canonical) own.push_back(request.pages[i]);
  }
  const size_t not_canonical = own.size();
  own.insert(own.end(), request.free_pages.begin(), request.free_pages.end());
  if (absl::Status owned = CheckOwned(*session, own); !owned.ok()) return owned;

  if (existing < page_count) EndNodeAt(place);
  for (size_t i = existing; i < page_count; ++i) {
    const auto page =
        std::span(tokens).subspan(i * page_tokens(), page_tokens());
    place.prefix.insert(place.prefix.end(), page.begin(), page.end());
    PagesOf(place.ns)[place.prefix] = {.id = request.pages[i]};
    Release(*session, request.pages[i]);
  }
  if (existing < page_count || request.lock_action == LockAction::kRelock) {
    EndNodeAt(place);
  }
  Place touched = place;
  DropPartialNode(touched);
  Touch(touched);

  const size_t duplicates = not_canonical - (page_count - existing);
  counters_.duplicate_pages += duplicates;
  if (!request.keep_duplicates) {
    for (size_t i = 0; i < duplicates; ++i) Release(*session, own[i]);
    result.freed_duplicates = static_cast<uint32_t>(duplicates);
  }
  for (PageId page : request.free_pages) Release(*session, page);
  if (request.lock_action == LockAction::kUnlock) {
    ReleaseLock(*session, request.anchor);
  } else if (request.lock_action == LockAction::kRelock) {
    // Still held: what follows the new boundary, unless that is in sent tokens.
    const size_t moved_by = page_count * page_tokens();
    std::vector<Token>& held = lock->prompt;
    held.erase(held.begin(), moved_by > request.prompt_tokens
                                 ? held.end()
                                 : held.begin() + moved_by);
    MoveLock(*lock, place);
  }
  result.existing_tokens = static_cast<uint32_t>(existing) * page_tokens();
  ++counters_.inserts;
  counters_.inserted_pages += page_count - existing;
  return result;
}

absl::StatusOr<LockResult> ReferenceCache::Lock(SessionId session_id,
                                                const NamespaceKey& ns,
                                                std::span<const Token> tokens,
                                                LockId choice) {
  Session* session = FindSession(session_id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  Place place{ns, {}};
  Extend(place, tokens, tokens.size() / page_tokens());
  EndNodeAt(place);
  Touch(place);
  if (absl::Status added = AddLock(*session, place, choice); !added.ok()) {
    return added;
  }
  return LockResult{choice, static_cast<uint32_t>(place.prefix.size())};
}

absl::Status ReferenceCache::Unlock(SessionId session_id,
                                    std::span<const LockId> locks) {
  for (size_t i = 0; i < locks.size(); ++i) {
    if (std::count(locks.begin(), locks.end(), locks[i]) > 1) {
      return MakeError(Reason::kLockUnknown, "listed twice");
    }
  }
  Session* session = FindSession(session_id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  for (LockId lock : locks) {
    if (FindLock(*session, lock) == nullptr) {
      return MakeError(Reason::kLockUnknown, "");
    }
  }
  for (LockId lock : locks) ReleaseLock(*session, lock);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PageId>> ReferenceCache::Allocate(
    SessionId session_id, uint32_t pages, const Choice& choice) {
  Session* session = FindSession(session_id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  if (absl::Status room = CheckRoom(pages, 0); !room.ok()) return room;
  if (absl::Status taken = TakePages(*session, pages, choice); !taken.ok()) {
    return taken;
  }
  return choice.pages;
}

absl::Status ReferenceCache::Free(SessionId session_id,
                                  std::span<const PageId> pages) {
  Session* session = FindSession(session_id);
  if (session == nullptr) return MakeError(Reason::kSessionLost, "");
  if (absl::Status owned = CheckOwned(*session, pages); !owned.ok()) {
    return owned;
  }
  for (PageId page : pages) Release(*session, page);
  return absl::OkStatus();
}

uint32_t ReferenceCache::Evict(uint32_t pages) {
  uint32_t evicted = 0;
  while (evicted < pages && EvictOne()) ++evicted;
  counters_.evicted_pages_on_request += evicted;
  return evicted;
}

FlushResult ReferenceCache::Flush() {
  return {Evict(options_.capacity_pages), LockedCount()};
}

// The unlocked leaf page with the oldest access. No two leaves are equally old:
// one access covers one path.
bool ReferenceCache::EvictOne() {
  Pages* home = nullptr;
  Pages::iterator victim;
  for (auto& [ns, pages] : namespaces_) {
    for (auto page = pages.begin(); page != pages.end(); ++page) {
      const auto next = std::next(page);
      const bool is_leaf =
          next == pages.end() || !StartsWith(next->first, page->first);
      if (!is_leaf || page->second.locks > 0) continue;
      if (home == nullptr ||
          page->second.last_access < victim->second.last_access) {
        home = &pages;
        victim = page;
      }
    }
  }
  if (home == nullptr) return false;
  Prefix before = victim->first;
  before.resize(before.size() - page_tokens());
  home->erase(victim);
  if (!before.empty()) home->at(before).ends_node = true;
  return true;
}

}  // namespace pando
