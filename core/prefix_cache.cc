// The data path of PrefixCache: match, lock, pages. prefix_cache_insert.cc has
// insert; prefix_cache_sessions.cc has sessions, statistics, the self-check.

#include "core/prefix_cache.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/check.h"
#include "core/errors.h"

namespace pando {
namespace {

// The most pages evicted under one hold of the mutex when nobody waits for
// them.
constexpr uint32_t kEvictionStep = 256;

uint32_t PagesFor(uint32_t tokens, uint32_t page_tokens) {
  return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
}

}  // namespace

PrefixCache::PrefixCache(const Options& options)
    : options_(options),
      tree_(options.page_tokens, options.capacity_pages),
      pool_(options.capacity_pages) {}

absl::StatusOr<MatchResult> PrefixCache::Match(const MatchRequest& request) {
  if (request.reserve_tokens > 0 && !request.lock) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("reserve_tokens is ", request.reserve_tokens,
                                  ", which needs lock = true"));
  }
  size_t max_tokens = request.tokens.size();
  if (request.max_tokens.has_value()) {
    max_tokens = std::min<size_t>(max_tokens, *request.max_tokens);
  }
  const size_t max_pages = max_tokens / options_.page_tokens;
  MatchResult result;
  result.pages.reserve(max_pages);
  result.reserved.reserve(
      std::min(PagesFor(request.reserve_tokens, options_.page_tokens),
               options_.capacity_pages));
  {
    absl::MutexLock hold(&mutex_);
    absl::Status status =
        MatchAndLock(request, static_cast<uint32_t>(max_pages), result);
    if (!status.ok()) return status;
  }
  if (request.reserve_tokens > result.matched_tokens) {
    // No more than the reserved pages have room for.
    const auto rest = request.tokens.subspan(result.matched_tokens);
    const size_t room = request.reserve_tokens - result.matched_tokens;
    HoldPrompt(request.session, result.lock,
               rest.first(std::min(rest.size(), room)));
  }
  return result;
}

absl::Status PrefixCache::MatchAndLock(const MatchRequest& request,
                                       uint32_t max_pages,
                                       MatchResult& result) {
  Session* session = nullptr;
  if (request.lock) {
    absl::StatusOr<Session*> found = FindSession(request.session);
    if (!found.ok()) return std::move(found).status();
    session = *found;
  }
  Node* root = tree_.FindRoot(request.ns);
  TreePosition position{root, 0};
  if (root != nullptr) {
    position = tree_.Walk(*root, request.tokens, max_pages, result.pages);
  }
  const auto matched_pages = static_cast<uint32_t>(result.pages.size());
  const uint32_t wanted_pages =
      PagesFor(request.reserve_tokens, options_.page_tokens);
  const uint32_t missing_pages =
      wanted_pages - std::min(wanted_pages, matched_pages);
  if (missing_pages > 0) {
    const uint32_t held_back =
        root == nullptr ? 0 : RadixTree::EvictablePagesUpTo(position);
    if (absl::Status room = CheckRoom(missing_pages, held_back); !room.ok()) {
      return room;
    }
  }

  result.matched_tokens = matched_pages * options_.page_tokens;
  if (request.lock) {
    Node& end = root == nullptr ? tree_.MakeRoot(request.ns)
                                : tree_.NodeEndingAt(position);
    if (request.touch) tree_.Touch(end);
    result.lock = TakeLock(*session, end);
    Reserve(missing_pages, *session, result.reserved);
  } else if (request.touch && root != nullptr) {
    tree_.Touch(position.LastWholeNode());
  }
  ++counters_.matches;
  if (request.touch) {
    counters_.query_tokens +=
        request.tokens.size() / options_.page_tokens * options_.page_tokens;
    counters_.hit_tokens += result.matched_tokens;
  }
  return absl::OkStatus();
}

// Outside the mutex, which a long prompt would hold too long. Nobody else knows
// the lock yet.
void PrefixCache::HoldPrompt(SessionId session_id, LockId id,
                             std::span<const Token> tokens) {
  auto held =
      std::make_shared<const std::vector<Token>>(tokens.begin(), tokens.end());
  absl::MutexLock hold(&mutex_);
  const Session* session = sessions_.Find(session_id);
  LockRecord* lock =
      session == nullptr ? nullptr : sessions_.FindLock(*session, id);
  if (lock != nullptr) lock->prompt.tokens = std::move(held);
}

absl::Status PrefixCache::CheckReserved(const Session& session,
                                        std::span<const PageId> pages) {
  absl::Status status;
  size_t marked = 0;
  for (; marked < pages.size(); ++marked) {
    const PageId page = pages[marked];
    if (!pool_.IsInRange(page)) {
      status = MakeError(
          Reason::kPageOutOfRange,
          absl::StrCat("page id ", page.value(), " is not in 1..",
                       pool_.capacity() - 1,
                       page == kPaddingPage ? " (page 0 is padding)" : ""));
      break;
    }
    if (!pool_.IsReservedBy(session.reserved, page)) {
      status = MakeError(Reason::kPageNotOwned,
                         absl::StrCat("page ", page.value(),
                                      " is not reserved by this session"));
      break;
    }
    if (!pool_.Mark(page)) {
      status =
          MakeError(Reason::kDuplicatePage,
                    absl::StrCat("page ", page.value(), " is listed twice"));
      break;
    }
  }
  for (PageId page : pages.first(marked)) pool_.Unmark(page);
  return status;
}

absl::StatusOr<LockResult> PrefixCache::Lock(SessionId session_id,
                                             const NamespaceKey& ns,
                                             std::span<const Token> tokens) {
  const auto max_pages =
      static_cast<uint32_t>(tokens.size() / options_.page_tokens);
  std::vector<PageId> pages;
  pages.reserve(max_pages);

  absl::MutexLock hold(&mutex_);
  absl::StatusOr<Session*> session = FindSession(session_id);
  if (!session.ok()) return std::move(session).status();
  Node& end = tree_.NodeEndingAt(
      tree_.Walk(tree_.MakeRoot(ns), tokens, max_pages, pages));
  tree_.Touch(end);
  return LockResult{TakeLock(**session, end),
                    static_cast<uint32_t>(pages.size()) * options_.page_tokens};
}

absl::Status PrefixCache::Unlock(SessionId session_id,
                                 std::span<const LockId> ids) {
  std::vector<LockId> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return MakeError(Reason::kLockUnknown,
                     absl::StrCat("lock ", twice->value(), " is listed twice"));
  }

  absl::MutexLock hold(&mutex_);
  absl::StatusOr<Session*> session = FindSession(session_id);
  if (!session.ok()) return std::move(session).status();
  for (LockId id : ids) {
    if (absl::StatusOr<LockRecord*> lock = FindLock(**session, id);
        !lock.ok()) {
      return std::move(lock).status();
    }
  }
  for (LockId id : ids) ReleaseLock(*sessions_.FindLock(**session, id));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PageId>> PrefixCache::Allocate(SessionId session_id,
                                                          uint32_t pages) {
  std::vector<PageId> allocated;
  allocated.reserve(std::min(pages, options_.capacity_pages));
  absl::MutexLock hold(&mutex_);
  absl::StatusOr<Session*> session = FindSession(session_id);
  if (!session.ok()) return std::move(session).status();
  if (absl::Status room = CheckRoom(pages, 0); !room.ok()) return room;
  Reserve(pages, **session, allocated);
  return allocated;
}

absl::Status PrefixCache::Free(SessionId session_id,
                               std::span<const PageId> pages) {
  absl::MutexLock hold(&mutex_);
  absl::StatusOr<Session*> session = FindSession(session_id);
  if (!session.ok()) return std::move(session).status();
  if (absl::Status owned = CheckReserved(**session, pages); !owned.ok()) {
    return owned;
  }
  for (PageId page : pages) pool_.Release((*session)->reserved, page);
  return absl::OkStatus();
}

uint32_t PrefixCache::Evict(uint32_t pages) {
  uint32_t evicted = 0;
  while (evicted < pages) {
    absl::MutexLock hold(&mutex_);
    const uint32_t step =
        EvictFromTree(std::min(pages - evicted, kEvictionStep));
    if (step == 0) break;
    counters_.evicted_pages_on_request += step;
    evicted += step;
  }
  return evicted;
}

FlushResult PrefixCache::Flush() {
  FlushResult result;
  result.evicted_pages = Evict(options_.capacity_pages);
  absl::MutexLock hold(&mutex_);
  result.protected_pages = tree_.protected_pages();
  return result;
}

absl::StatusOr<Session*> PrefixCache::FindSession(SessionId id) {
  Session* session = sessions_.Find(id);
  if (session != nullptr) return session;
  return MakeError(Reason::kSessionLost,
                   "session_id names no live session; open a new one and drop "
                   "every page id and lock of the old one");
}

absl::StatusOr<LockRecord*> PrefixCache::FindLock(const Session& session,
                                                  LockId id) {
  LockRecord* lock = sessions_.FindLock(session, id);
  if (lock != nullptr) return lock;
  return MakeError(
      Reason::kLockUnknown,
      absl::StrCat("lock ", id.value(), " is not held by this session"));
}

absl::Status PrefixCache::CheckRoom(uint32_t pages, uint32_t held_back) {
  const uint32_t free = pool_.count(PageState::kFree);
  const uint32_t evictable = tree_.evictable_pages() - held_back;
  if (pages <= uint64_t{free} + evictable) return absl::OkStatus();
  ++counters_.allocation_failures;
  return MakeError(
      Reason::kPoolExhausted,
      absl::StrCat(pages, " pages are needed, but only ", free,
                   " are free and ", evictable, " evictable of ",
                   pool_.capacity() - 1, "; ",
                   tree_.protected_pages() + held_back, " are protected, ",
                   pool_.count(PageState::kReserved), " reserved, ",
                   pool_.count(PageState::kQuarantined), " quarantined"));
}

void PrefixCache::Reserve(uint32_t pages, Session& session,
                          std::vector<PageId>& out) {
  const uint32_t free = pool_.count(PageState::kFree);
  if (free < pages) {
    counters_.evicted_pages_for_allocation += EvictFromTree(pages - free);
  }
  pool_.Reserve(pages, session.reserved, out);
  counters_.allocated_pages += pages;
}

uint32_t PrefixCache::EvictFromTree(uint32_t pages) {
  evicted_.clear();
  tree_.Evict(pages, evicted_);
  pool_.FreeSealed(evicted_);
  return static_cast<uint32_t>(evicted_.size());
}

LockId PrefixCache::TakeLock(Session& session, Node& node) {
  tree_.Lock(node);
  ++counters_.locks_taken;
  return sessions_.AddLock(session, node);
}

void PrefixCache::ReleaseLock(LockRecord& lock) {
  Node& root = RadixTree::RootOf(*lock.node);
  tree_.Unlock(*lock.node);
  sessions_.RemoveLock(lock);
  tree_.PruneRoot(root);
  ++counters_.locks_released;
}

}  // namespace pando
