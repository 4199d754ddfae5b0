// The insert of PrefixCache.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/errors.h"
#include "core/prefix_cache.h"

namespace pando {
namespace {

absl::Status CheckAnchor(const InsertRequest& request) {
  if (request.anchor != LockId()) {
    if (request.after == PrefixHandle()) return absl::OkStatus();
    return MakeError(Reason::kInvalidField,
                     "both lock_id and `after` say where the insert begins");
  }
  if (request.lock_action != LockAction::kKeep) {
    return MakeError(Reason::kInvalidField,
                     "lock_action is set, but lock_id is 0");
  }
  if (request.prompt_tokens > 0) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("prompt_tokens is ", request.prompt_tokens,
                                  ", but lock_id is 0"));
  }
  return absl::OkStatus();
}

absl::Status CheckPageCount(const InsertRequest& request, uint32_t lookahead,
                            uint32_t page_tokens) {
  const size_t tokens = request.prompt_tokens + request.tokens.size();
  const uint32_t whole_pages = WholePages(lookahead, tokens, page_tokens);
  if (request.pages.size() == whole_pages) return absl::OkStatus();
  return MakeError(
      Reason::kInvalidAlignment,
      absl::StrCat("page_ids has ", request.pages.size(), " ids, but ", tokens,
                   " tokens are ", whole_pages, " whole pages of ", page_tokens,
                   lookahead > 0 ? " pairs of neighbouring tokens" : ""));
}

// The whole pages of an insert.
SegmentRef MakeSegment(const InsertRequest& request, const HeldPrompt& prompt,
                       uint32_t lookahead, uint32_t page_tokens) {
  if (request.pages.empty()) return SegmentRef();
  const size_t count =
      SpelledTokens(lookahead, request.pages.size(), page_tokens);
  const std::span<const Token> held =
      prompt.remaining().first(std::min<size_t>(request.prompt_tokens, count));
  return SegmentRef::Copy(held, request.tokens.first(count - held.size()),
                          request.pages);
}

InsertResult Repeated(InsertResult first) {
  first.is_repeat = true;
  return first;
}

std::span<const Token> TokensOf(const SegmentRef& segment) {
  return {segment->tokens(), segment->token_count()};
}

}  // namespace

absl::StatusOr<InsertResult> PrefixCache::Insert(const InsertRequest& request) {
  RETURN_IF_ERROR(CheckAnchor(request));
  ASSIGN_OR_RETURN(InsertSource source, FindSource(request));
  if (source.answer.has_value()) return Repeated(*std::move(source.answer));
  const uint32_t lookahead = source.lookahead;
  const HeldPrompt& prompt = source.prompt;
  RETURN_IF_ERROR(CheckPageCount(request, lookahead, options_.page_tokens));
  // Made, and if not needed freed, outside the mutex.
  SegmentRef segment =
      MakeSegment(request, prompt, lookahead, options_.page_tokens);
  InsertResult result;
  std::vector<PageId>& canonical = result.canonical_pages;
  canonical.reserve(request.pages.size());

  Hold hold(this, Operation::kInsert);
  ASSIGN_OR_RETURN(Session* const session, FindSession(request.session));
  ASSIGN_OR_RETURN(const auto* const answer,
                   FindAnswer<InsertResult>(*session, request.request_id));
  if (answer != nullptr) return Repeated(*answer);
  ASSIGN_OR_RETURN(InsertTarget target, FindTarget(request, *session));
  if (request.prompt_tokens > 0 && target.anchor->prompt != prompt) {
    return MakeError(Reason::kLockMoved,
                     absl::StrCat("lock ", request.anchor.value(),
                                  " was moved by another call meanwhile"));
  }
  TreePosition position = target.start;
  if (target.ns != nullptr && segment) {
    position = tree_.Walk(target.start, TokensOf(segment),
                          segment->page_count(), &canonical);
  }
  RETURN_IF_ERROR(CheckInsertedPages(request, *session, canonical));
  const uint32_t quota_class = target.ns == nullptr
                                   ? quotas_.ClassOf(request.ns)
                                   : target.ns->quota_class;
  RETURN_IF_ERROR(CheckInsertQuota(request, quota_class, canonical.size()));

  position = Publish(request, target, segment, position, canonical.size());
  if (position.node != nullptr && position.pages() > 0) {
    result.handle = HandleTo(position);
  }
  result.existing_tokens =
      static_cast<uint32_t>(canonical.size()) * options_.page_tokens;
  result.freed_duplicates = FreeDuplicates(request, *session, canonical);
  for (PageId page : request.free_pages) ReleasePage(*session, page);
  if (request.lock_action == LockAction::kRelock) {
    MoveLock(*target.anchor, *position.node, request);
  }
  if (request.lock_action == LockAction::kUnlock) {
    ReleaseLock(*target.anchor, LockEnd::kUnlocked);
  }
  ++counters_.inserts;
  KeepAnswer(*session, request.request_id, result);
  return result;
}

// What the insert has to know before it makes its segment.
absl::StatusOr<PrefixCache::InsertSource> PrefixCache::FindSource(
    const InsertRequest& request) {
  InsertSource source{.lookahead = LookaheadOf(request.ns)};
  if (request.anchor == LockId() && request.request_id == RequestId()) {
    return source;
  }
  absl::MutexLock hold(&mutex_);
  ASSIGN_OR_RETURN(Session* const session, FindSession(request.session));
  ASSIGN_OR_RETURN(const auto* const answer,
                   FindAnswer<InsertResult>(*session, request.request_id));
  if (answer != nullptr) {
    source.answer = *answer;
    return source;
  }
  if (request.anchor == LockId()) return source;
  ASSIGN_OR_RETURN(LockRecord* const lock, FindLock(*session, request.anchor));
  source.lookahead = lock->node->ns->lookahead();
  if (request.prompt_tokens == 0) return source;
  source.prompt = lock->prompt;
  const size_t held = source.prompt.remaining().size();
  if (request.prompt_tokens > held) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("prompt_tokens is ", request.prompt_tokens,
                                  ", but lock ", request.anchor.value(),
                                  " holds ", held, " tokens of a prompt"));
  }
  return source;
}

absl::StatusOr<PrefixCache::InsertTarget> PrefixCache::FindTarget(
    const InsertRequest& request, Session& session) {
  if (request.anchor != LockId()) {
    ASSIGN_OR_RETURN(LockRecord* const anchor,
                     FindLock(session, request.anchor));
    Node& start = *anchor->node;
    if (request.ns != NamespaceKey() && request.ns != *start.ns->key) {
      return MakeError(Reason::kNamespaceMismatch,
                       "namespace is not the one of lock_id");
    }
    return InsertTarget{&session, anchor, start.ns, EndOf(start)};
  }
  if (request.after != PrefixHandle()) {
    ASSIGN_OR_RETURN(TreePosition start, FindHandle(request.ns, request.after));
    return InsertTarget{&session, nullptr, start.node->ns, start};
  }
  Namespace* ns = tree_.FindNamespace(request.ns);
  return InsertTarget{&session, nullptr, ns,
                      ns == nullptr ? TreePosition{} : EndOf(*ns->root)};
}

// Pages that were reserved for another class now count for this one.
absl::Status PrefixCache::CheckInsertQuota(const InsertRequest& request,
                                           uint32_t quota_class,
                                           size_t existing) {
  const std::optional<uint32_t> cap = class_limits_[quota_class].cap_pages;
  if (!cap.has_value()) return absl::OkStatus();
  uint32_t joining = 0;
  for (PageId page : request.pages.subspan(existing)) {
    if (pool_.quota_class(page) != quota_class) ++joining;
  }
  const uint32_t used = UsedPages(quota_class);
  if (joining == 0 || uint64_t{used} + joining <= *cap) {
    return absl::OkStatus();
  }
  ++counters_.quota_rejections;
  ++measured_.classes[quota_class].quota_rejections;
  return MakeError(
      Reason::kQuotaExceeded,
      absl::StrCat(joining, " pages of another class were to join class '",
                   quotas_.name(quota_class), "', whose namespaces have ", used,
                   " of ", *cap, " pages"));
}

// Adds what is new after `position`, where the first `existing` pages end.
// Returns where the insert ends.
TreePosition PrefixCache::Publish(const InsertRequest& request,
                                  InsertTarget& target, SegmentRef& segment,
                                  TreePosition position, size_t existing) {
  const bool is_chunk = request.lock_action == LockAction::kRelock;
  const Use use{.is_hit = !is_chunk, .priority = request.priority};
  if (existing == request.pages.size()) {
    if (position.node == nullptr) return position;
    if (is_chunk) position = EndOf(tree_.NodeEndingAt(position));
    tree_.Touch(position.LastWholeNode(), use);
    return position;
  }
  const std::span<const PageId> added = request.pages.subspan(existing);
  if (existing > 0) {
    segment = SegmentRef::Copy(
        TokensOf(segment).subspan(existing * options_.page_tokens), added);
  }
  Node& parent = position.node == nullptr
                     ? *tree_.MakeNamespace(request.ns).root
                     : tree_.NodeEndingAt(position);
  Node& leaf = tree_.AddLeaf(parent, std::move(segment), use);
  for (PageId page : added) pool_.Seal(target.session->reserved, page);
  counters_.inserted_pages += added.size();
  LogNode(leaf, events_);
  LogNode(leaf, churn_);
  EndPending(
      pending_.Find(parent, TokensOf(leaf.segment)
                                .first(SpelledTokens(leaf.ns->lookahead(), 1,
                                                     options_.page_tokens))),
      PendingOutcome::kPublished);
  return EndOf(leaf);
}

uint32_t PrefixCache::FreeDuplicates(const InsertRequest& request,
                                     Session& session,
                                     std::span<const PageId> canonical) {
  uint32_t freed = 0;
  for (size_t i = 0; i < canonical.size(); ++i) {
    if (request.pages[i] == canonical[i]) continue;
    ++counters_.duplicate_pages;
    if (request.keep_duplicates) continue;
    pool_.Release(session.reserved, request.pages[i]);
    ++freed;
  }
  return freed;
}

// A page of the overlap is the cache's own or a duplicate; every other page is
// reserved by the session. No page is listed twice.
absl::Status PrefixCache::CheckInsertedPages(
    const InsertRequest& request, const Session& session,
    std::span<const PageId> canonical) {
  std::vector<PageId> own;
  own.reserve(request.pages.size() + request.free_pages.size());
  for (size_t i = 0; i < request.pages.size(); ++i) {
    const bool is_canonical =
        i < canonical.size() && request.pages[i] == canonical[i];
    if (!is_canonical) own.push_back(request.pages[i]);
  }
  own.insert(own.end(), request.free_pages.begin(), request.free_pages.end());
  return CheckReserved(session, own);
}

// What the insert took from the held prompt is before the new boundary. When it
// took all tokens of its pages from there, the prompt goes on.
void PrefixCache::MoveLock(LockRecord& lock, Node& descendant,
                           const InsertRequest& request) {
  if (request.pages.empty()) return;
  // Not published: the insert took another way.
  EndPending(lock.pending, PendingOutcome::kGivenUp);
  tree_.Lock(descendant, lock.node);
  lock.node = &descendant;
  const size_t pages = request.pages.size();
  if (SpelledTokens(descendant.ns->lookahead(), pages, options_.page_tokens) <=
      request.prompt_tokens) {
    lock.prompt.begin += static_cast<uint32_t>(pages * options_.page_tokens);
  } else {
    lock.prompt = HeldPrompt();
  }
  MarkPending(lock, lock.prompt.remaining(), Reservation());
}

}  // namespace pando
