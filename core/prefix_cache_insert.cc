// The insert of PrefixCache.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/errors.h"
#include "core/prefix_cache.h"

namespace pando {
namespace {

absl::Status CheckShape(const InsertRequest& request, uint32_t page_tokens) {
  const size_t tokens = request.prompt_tokens + request.tokens.size();
  const size_t whole_pages = tokens / page_tokens;
  if (request.pages.size() != whole_pages) {
    return MakeError(
        Reason::kInvalidAlignment,
        absl::StrCat("page_ids has ", request.pages.size(), " ids, but ",
                     tokens, " tokens are ", whole_pages, " whole pages of ",
                     page_tokens));
  }
  if (request.anchor != LockId()) return absl::OkStatus();
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

// The whole pages of an insert.
SegmentRef MakeSegment(const InsertRequest& request, const HeldPrompt& prompt,
                       uint32_t page_tokens) {
  if (request.pages.empty()) return SegmentRef();
  const size_t count = request.pages.size() * page_tokens;
  const std::span<const Token> held =
      prompt.remaining().first(std::min<size_t>(request.prompt_tokens, count));
  return SegmentRef::Copy(held, request.tokens.first(count - held.size()),
                          request.pages);
}

}  // namespace

absl::StatusOr<InsertResult> PrefixCache::Insert(const InsertRequest& request) {
  if (absl::Status shape = CheckShape(request, options_.page_tokens);
      !shape.ok()) {
    return shape;
  }
  HeldPrompt prompt;
  if (request.prompt_tokens > 0) {
    absl::StatusOr<HeldPrompt> held = FindPrompt(request);
    if (!held.ok()) return std::move(held).status();
    prompt = *std::move(held);
  }
  // Made, and if not needed freed, outside the mutex.
  SegmentRef segment = MakeSegment(request, prompt, options_.page_tokens);
  InsertResult result;
  std::vector<PageId>& canonical = result.canonical_pages;
  canonical.reserve(request.pages.size());

  absl::MutexLock hold(&mutex_);
  absl::StatusOr<InsertTarget> target = FindTarget(request);
  if (!target.ok()) return std::move(target).status();
  auto [session, anchor, start] = *target;
  if (request.prompt_tokens > 0 && anchor->prompt != prompt) {
    return MakeError(Reason::kLockMoved,
                     absl::StrCat("lock ", request.anchor.value(),
                                  " was moved by another call meanwhile"));
  }
  TreePosition position{start, start == nullptr ? 0 : start->page_count};
  if (start != nullptr && segment) {
    position =
        tree_.Walk(*start, TokensOf(segment), segment->page_count(), canonical);
  }
  if (absl::Status pages = CheckInsertedPages(request, *session, canonical);
      !pages.ok()) {
    return pages;
  }

  Node* end = Publish(request, *session, segment, position, canonical.size());
  result.existing_tokens =
      static_cast<uint32_t>(canonical.size()) * options_.page_tokens;
  result.freed_duplicates = FreeDuplicates(request, *session, canonical);
  for (PageId page : request.free_pages) pool_.Release(session->reserved, page);
  if (request.lock_action == LockAction::kRelock) {
    MoveLock(*anchor, *end, request);
  }
  if (request.lock_action == LockAction::kUnlock) ReleaseLock(*anchor);
  ++counters_.inserts;
  return result;
}

absl::StatusOr<HeldPrompt> PrefixCache::FindPrompt(
    const InsertRequest& request) {
  absl::MutexLock hold(&mutex_);
  absl::StatusOr<Session*> session = FindSession(request.session);
  if (!session.ok()) return std::move(session).status();
  absl::StatusOr<LockRecord*> lock = FindLock(**session, request.anchor);
  if (!lock.ok()) return std::move(lock).status();
  const size_t held = (*lock)->prompt.remaining().size();
  if (request.prompt_tokens > held) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("prompt_tokens is ", request.prompt_tokens,
                                  ", but lock ", request.anchor.value(),
                                  " holds ", held, " tokens of a prompt"));
  }
  return (*lock)->prompt;
}

absl::StatusOr<PrefixCache::InsertTarget> PrefixCache::FindTarget(
    const InsertRequest& request) {
  absl::StatusOr<Session*> session = FindSession(request.session);
  if (!session.ok()) return std::move(session).status();
  if (request.anchor == LockId()) {
    return InsertTarget{*session, nullptr, tree_.FindRoot(request.ns)};
  }
  absl::StatusOr<LockRecord*> anchor = FindLock(**session, request.anchor);
  if (!anchor.ok()) return std::move(anchor).status();
  Node* start = (*anchor)->node;
  if (request.ns != NamespaceKey() &&
      request.ns != RadixTree::RootOf(*start).root_of->key) {
    return MakeError(Reason::kNamespaceMismatch,
                     "namespace is not the one of lock_id");
  }
  return InsertTarget{*session, *anchor, start};
}

std::span<const Token> PrefixCache::TokensOf(const SegmentRef& segment) const {
  return {segment->tokens(),
          size_t{segment->page_count()} * options_.page_tokens};
}

// Adds what is new after `position`, where the first `existing` pages end.
// Returns the node that ends with the insert, if one has to.
Node* PrefixCache::Publish(const InsertRequest& request, Session& session,
                           SegmentRef& segment, TreePosition position,
                           size_t existing) {
  if (existing == request.pages.size()) {
    if (position.node == nullptr) return nullptr;
    if (request.lock_action != LockAction::kRelock) {
      tree_.Touch(position.LastWholeNode());
      return nullptr;
    }
    Node& end = tree_.NodeEndingAt(position);
    tree_.Touch(end);
    return &end;
  }
  const std::span<const PageId> added = request.pages.subspan(existing);
  if (existing > 0) {
    segment = SegmentRef::Copy(
        TokensOf(segment).subspan(existing * options_.page_tokens), added);
  }
  Node& parent = position.node == nullptr ? tree_.MakeRoot(request.ns)
                                          : tree_.NodeEndingAt(position);
  Node& leaf = tree_.AddLeaf(parent, std::move(segment));
  for (PageId page : added) pool_.Seal(session.reserved, page);
  counters_.inserted_pages += added.size();
  return &leaf;
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

// What the insert took from the held prompt is before the new boundary.
void PrefixCache::MoveLock(LockRecord& lock, Node& descendant,
                           const InsertRequest& request) {
  tree_.Lock(descendant, lock.node);
  lock.node = &descendant;
  const size_t moved_by = request.pages.size() * options_.page_tokens;
  if (moved_by <= request.prompt_tokens) {
    lock.prompt.begin += static_cast<uint32_t>(moved_by);
  } else {
    lock.prompt = HeldPrompt();
  }
}

}  // namespace pando
