// How PrefixCache finds and matches prefixes. The rest of it is in the other
// prefix_cache_*.cc, a topic each.

#include "core/prefix_cache.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/errors.h"

namespace pando {
namespace {

uint32_t PagesFor(uint32_t tokens, uint32_t page_tokens) {
  return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
}

absl::Status CheckLockingFields(const MatchRequest& request) {
  if (request.lock) return absl::OkStatus();
  if (request.reserve_tokens > 0) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("reserve_tokens is ", request.reserve_tokens,
                                  ", which needs lock = true"));
  }
  if (request.request_id != RequestId()) {
    return MakeError(Reason::kInvalidField,
                     "request_id is set, which needs lock = true");
  }
  if (request.wait) {
    return MakeError(Reason::kInvalidField,
                     "pending_wait_ms is set, which needs lock = true");
  }
  return absl::OkStatus();
}

// The request's tokens after the match; none are known when max_tokens ended it
// before the request's handle.
std::span<const Token> TokensAfter(uint32_t matched_tokens,
                                   const MatchRequest& request) {
  if (matched_tokens < request.after.tokens) return {};
  return request.tokens.subspan(matched_tokens - request.after.tokens);
}

PrefixQuery QueryOf(const MatchRequest& request) {
  return {.ns = request.ns,
          .tokens = request.tokens,
          .max_tokens = request.max_tokens,
          .after = request.after};
}

// Of the whole prompt. Even when nothing follows the handle, there is the token
// that its last unit ends with.
size_t PromptTokens(const PrefixQuery& query) {
  const size_t sent = query.tokens.size();
  if (query.after.tokens == 0) return sent;
  return query.after.tokens + std::max<size_t>(sent, LookaheadOf(query.ns));
}

}  // namespace

PrefixCache::PrefixCache(const Options& options)
    : options_(options),
      quotas_(options.quota_classes),
      tree_(options.page_tokens, options.capacity_pages,
            options.eviction_policy, &quotas_),
      pool_(options.capacity_pages, quotas_.count()),
      events_(options.capacity_pages),
      churn_(options.capacity_pages),
      limits_(quotas_.count()),
      session_limits_(options.session_limits),
      low_free_pages_(options.low_free_pages),
      high_free_pages_(options.high_free_pages),
      class_limits_(quotas_.count()) {
  measured_.classes.resize(quotas_.count());
  SetQuotas(options.quota_classes);
}

absl::StatusOr<MatchResult> PrefixCache::Match(const MatchRequest& request) {
  RETURN_IF_ERROR(CheckLockingFields(request));
  MatchResult result;
  result.pages.reserve(request.tokens.size() / options_.page_tokens);
  result.reserved.reserve(
      std::min(PagesFor(request.reserve_tokens, options_.page_tokens),
               options_.capacity_pages));
  {
    Hold hold(this, Operation::kMatch);
    Session* session = nullptr;
    if (request.lock) {
      ASSIGN_OR_RETURN(session, FindSession(request.session));
      ASSIGN_OR_RETURN(const auto* const answer,
                       FindAnswer<MatchResult>(*session, request.request_id));
      if (answer != nullptr) return *answer;
    }
    RETURN_IF_ERROR(MatchAndLock(request, session, result));
    if (result.wait != WaitId()) return result;
    if (request.lock) KeepAnswer(*session, request.request_id, result);
  }
  if (request.reserve_tokens > result.matched_tokens) {
    HoldPrompt(request, result);
  }
  return result;
}

// `session` takes the lock, if the request asks for one.
absl::Status PrefixCache::MatchAndLock(const MatchRequest& request,
                                       Session* session, MatchResult& result) {
  const PrefixQuery query = QueryOf(request);
  ASSIGN_OR_RETURN(FoundPrefix found, FindPrefix(query, &result.pages));
  PendingPage* const pending = FindPending(found, query);
  result.is_pending = pending != nullptr;
  if (pending != nullptr && request.wait) {
    result.wait = pending_.Wait(*pending, session->id);
    result.pages.clear();
    ++counters_.pending_waits;
    return absl::OkStatus();
  }
  auto [ns, position, max_pages] = found;
  const uint32_t matched_pages = found.pages();
  const uint32_t wanted_pages =
      PagesFor(request.reserve_tokens, options_.page_tokens);
  const uint32_t missing_pages =
      wanted_pages - std::min(wanted_pages, matched_pages);
  if (request.lock) {
    RETURN_IF_ERROR(CheckSessionLimits(*session, 1, missing_pages));
  }
  const uint32_t quota_class =
      ns == nullptr ? quotas_.ClassOf(request.ns) : ns->quota_class;
  if (missing_pages > 0) {
    const uint32_t held_back =
        ns == nullptr ? 0 : RadixTree::EvictablePagesUpTo(position);
    RETURN_IF_ERROR(CheckRoom(missing_pages, quota_class, held_back));
  }

  result.matched_tokens = matched_pages * options_.page_tokens;
  if (request.lock) {
    Node& end = ns == nullptr ? *tree_.MakeNamespace(request.ns).root
                              : tree_.NodeEndingAt(position);
    position = EndOf(end);
    if (request.touch) RecordReuse(end);
    LockRecord& lock = TakeLock(*session, end);
    result.lock = SessionTable::IdOf(lock);
    if (request.touch) tree_.Touch(end);
    Reserve(missing_pages, quota_class, *session, result.reserved);
    if (missing_pages > 0) {
      MarkPending(lock, TokensAfter(result.matched_tokens, request),
                  pool_.reservation(result.reserved.front()));
    }
  } else if (request.touch && ns != nullptr) {
    RecordReuse(position.LastWholeNode());
    tree_.Touch(position.LastWholeNode());
  }
  if (matched_pages > 0) result.handle = HandleTo(position);
  ++counters_.matches;
  RecordMatch(found, quota_class);
  if (request.touch) {
    const uint64_t query_tokens =
        uint64_t{WholePages(LookaheadOf(request.ns), PromptTokens(query),
                            options_.page_tokens)} *
        options_.page_tokens;
    counters_.query_tokens += query_tokens;
    counters_.hit_tokens += result.matched_tokens;
    measured_.classes[quota_class].query_tokens += query_tokens;
    measured_.classes[quota_class].hit_tokens += result.matched_tokens;
  }
  return absl::OkStatus();
}

// Gives the lock the tokens after the match that the reserved pages have room
// for. Copied outside the mutex, which a long prompt would hold too long:
// meanwhile the lock may be released, or moved by a caller that has its id from
// a repeat of the request.
void PrefixCache::HoldPrompt(const MatchRequest& request,
                             const MatchResult& result) {
  const auto rest = TokensAfter(result.matched_tokens, request);
  const size_t room = size_t{request.reserve_tokens} - result.matched_tokens +
                      LookaheadOf(request.ns);
  const auto tokens = rest.first(std::min(rest.size(), room));
  auto held =
      std::make_shared<const std::vector<Token>>(tokens.begin(), tokens.end());
  absl::MutexLock hold(&mutex_);
  const Session* session = sessions_.Find(request.session);
  LockRecord* lock =
      session == nullptr ? nullptr : sessions_.FindLock(*session, result.lock);
  if (lock == nullptr ||
      lock->node->end_pages() * options_.page_tokens != result.matched_tokens) {
    return;
  }
  lock->prompt.tokens = std::move(held);
}

absl::StatusOr<PrefixScore> PrefixCache::Score(const PrefixQuery& query) {
  Hold hold(this, Operation::kScore);
  ASSIGN_OR_RETURN(FoundPrefix found, FindPrefix(query, nullptr));
  return PrefixScore{.matched_tokens = found.pages() * options_.page_tokens,
                     .is_pending = FindPending(found, query) != nullptr};
}

// Appends to `pages` those that come after the query's handle.
absl::StatusOr<PrefixCache::FoundPrefix> PrefixCache::FindPrefix(
    const PrefixQuery& query, std::vector<PageId>* pages) {
  size_t tokens = PromptTokens(query);
  if (query.max_tokens.has_value()) {
    tokens = std::min<size_t>(tokens, *query.max_tokens);
  }
  FoundPrefix found;
  found.max_pages =
      WholePages(LookaheadOf(query.ns), tokens, options_.page_tokens);
  if (query.after == PrefixHandle()) {
    found.ns = tree_.FindNamespace(query.ns);
    if (found.ns == nullptr) return found;
    found.position = EndOf(*found.ns->root);
  } else {
    absl::StatusOr<TreePosition> position = FindHandle(query.ns, query.after);
    if (!position.ok()) return std::move(position).status();
    found.position = *position;
    found.ns = found.position.node->ns;
    if (found.max_pages < found.position.pages()) {
      found.position = *tree_.FindPosition(query.after.node, found.max_pages);
    }
  }
  found.position = tree_.Walk(found.position, query.tokens,
                              found.max_pages - found.position.pages(), pages);
  return found;
}

absl::StatusOr<TreePosition> PrefixCache::FindHandle(const NamespaceKey& ns,
                                                     PrefixHandle handle) {
  if (handle.tokens % options_.page_tokens != 0) {
    return MakeError(
        Reason::kInvalidField,
        absl::StrCat("after.tokens is ", handle.tokens,
                     "; it must be a multiple of ", options_.page_tokens));
  }
  const std::optional<TreePosition> position =
      tree_.FindPosition(handle.node, handle.tokens / options_.page_tokens);
  if (!position.has_value()) {
    return MakeError(Reason::kHandleGone,
                     "the prefix that `after` names was evicted; send the "
                     "whole prompt");
  }
  if (*position->node->ns->key != ns) {
    return MakeError(Reason::kNamespaceMismatch,
                     "namespace is not the one of `after`");
  }
  return *position;
}

PrefixHandle PrefixCache::HandleTo(TreePosition position) const {
  return {Slab<Node>::HandleOf(*position.node),
          position.pages() * options_.page_tokens};
}

absl::StatusOr<Session*> PrefixCache::FindSession(SessionId id) {
  Session* session = sessions_.Find(id);
  if (session != nullptr) return session;
  return MakeError(Reason::kSessionLost,
                   "session_id names no live session; open a new one and drop "
                   "every page id and lock of the old one");
}

}  // namespace pando
