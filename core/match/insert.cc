#include "core/match/insert.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"
#include "core/tree/prefix_search.h"

namespace pando {
namespace {

std::span<const Token> TokensOf(const SegmentRef& segment) {
  return {segment->tokens(), segment->token_count()};
}

// How many of the first pages of the insert are already the cache's own pages:
// nearly always all that overlap with what is cached.
size_t CountCanonical(const InsertRequest& request,
                      std::span<const PageId> canonical) {
  return std::ranges::mismatch(request.pages, canonical).in1 -
         request.pages.begin();
}

// A page of the overlap is the cache's own or a duplicate; every other page is
// reserved by the session. No page is listed twice.
absl::Status CheckPages(CacheParts& parts, const InsertRequest& request,
                        const Session& session,
                        std::span<const PageId> canonical) {
  const size_t first = CountCanonical(request, canonical);
  std::vector<PageId> own;
  own.reserve(request.pages.size() - first + request.free_pages.size());
  for (size_t i = first; i < canonical.size(); ++i) {
    if (request.pages[i] != canonical[i]) own.push_back(request.pages[i]);
  }
  for (std::span<const PageId> pages :
       {request.pages.subspan(canonical.size()), request.free_pages}) {
    own.insert(own.end(), pages.begin(), pages.end());
  }
  return parts.pool.CheckReserved(session.reserved, own);
}

// Returns the facts of the insert's request. For an insert without an admission
// before it, the request begins here.
RequestFacts FactsOf(CacheParts& parts, const InsertRequest& request,
                     const InsertTarget& target, uint32_t cached_pages) {
  const uint32_t page_tokens = parts.page_tokens();
  RequestFacts facts;
  if (target.anchor != nullptr) facts = target.anchor->request;
  const uint32_t start =
      target.ns == nullptr ? 0 : target.start.pages() * page_tokens;
  const auto end = start + static_cast<uint32_t>(request.prompt_tokens +
                                                 request.tokens.size());
  if (facts.tick == 0 && !request.pages.empty()) {
    facts = parts.tree.BeginRequest(end, start + cached_pages * page_tokens);
  }
  facts.output_tokens =
      request.output_tokens.value_or(end - std::min(end, facts.prompt_tokens));
  return facts;
}

// The nodes from below `parent` to `leaf` are new.
void NoteStored(CacheJournal& journal, const Node& parent, const Node& leaf) {
  if (leaf.parent != &parent) NoteStored(journal, parent, *leaf.parent);
  journal.NoteStored(leaf);
}

// Adds the pages after the first `existing` ones, which are cached already and
// end at `position`. Returns where the insert ends. The caller seals the pages.
TreePosition AddNewPages(CacheParts& parts, const InsertRequest& request,
                         SegmentRef& segment, TreePosition position,
                         size_t existing, RequestFacts& facts) {
  const bool is_chunk =
      request.lock_action == LockAction::kRelock || request.is_part;
  const Use use{.is_hit = !is_chunk,
                .priority = request.priority,
                .request = facts.tick > 0 ? &facts : nullptr};
  if (existing == request.pages.size()) {
    if (position.node == nullptr) return position;
    if (is_chunk) position = EndOf(parts.tree.NodeEndingAt(position));
    parts.tree.Touch(position.LastWholeNode(), use);
    return position;
  }
  const std::span<const PageId> added = request.pages.subspan(existing);
  if (existing > 0) {
    segment = SegmentRef::Copy(
        TokensOf(segment).subspan(existing * parts.page_tokens()), added,
        parts.tree.arena());
  }
  Node& parent = position.node == nullptr
                     ? *parts.tree.FindOrMakeNamespace(request.ns).root
                     : parts.tree.NodeEndingAt(position);
  Node& leaf = parts.tree.AddLeaf(parent, std::move(segment), use);
  if (request.is_load) parts.tree.MarkLoaded(parent, leaf);
  parts.pending.End(
      parts.pending.Find(parent, TokensOf(leaf.segment)),
      request.is_load ? PendingOutcome::kLoaded : PendingOutcome::kPublished);
  for (PageId page : added) {
    // If another pending page was to be written here, it never will be.
    parts.pending.EndReserved(parts.pool.reservation(page));
  }
  NoteStored(parts.journal, parent, leaf);
  return EndOf(leaf);
}

uint32_t FreeDuplicates(CacheParts& parts, const InsertRequest& request,
                        Session& session, std::span<const PageId> canonical) {
  uint32_t freed = 0;
  for (size_t i = CountCanonical(request, canonical); i < canonical.size();
       ++i) {
    if (request.pages[i] == canonical[i]) continue;
    ++parts.journal.counters().duplicate_pages;
    if (request.keep_duplicates) continue;
    parts.holdings.FreePage(session, request.pages[i]);
    ++freed;
  }
  return freed;
}

// Follows the insert's hints on its next use. It never retains longer than the
// present limit of the quota class.
void TakeHints(CacheParts& parts, const InsertRequest& request, Node& end) {
  if (end.is_root()) return;
  if (request.expected_reuse == ExpectedReuse::kEnded) {
    return parts.tree.EndPrefix(end);
  }
  uint16_t seconds =
      parts.budget.limits(end.ns->quota_class).max_retention_seconds;
  if (request.retain_seconds > 0) {
    seconds = static_cast<uint16_t>(
        std::min<uint32_t>(seconds, request.retain_seconds));
  } else if (request.expected_reuse == ExpectedReuse::kUnknown) {
    return;
  }
  if (seconds > 0) parts.tree.Retain(end, seconds);
}

// Moves the anchor to the end of the insert. The lock keeps holding its prompt
// if all tokens of the inserted pages came from it; it then begins after them.
void MoveAnchor(CacheParts& parts, LockRecord& lock, Node& end,
                const InsertRequest& request) {
  if (request.pages.empty()) return;
  parts.holdings.MoveLock(lock, end);
  const size_t pages = request.pages.size();
  const uint32_t page_tokens = parts.page_tokens();
  if (SpelledTokens(end.ns->lookahead(), pages, page_tokens) <=
      request.prompt_tokens) {
    parts.sessions.AdvancePrompt(lock,
                                 static_cast<uint32_t>(pages * page_tokens));
    if (lock.prompt.remaining().empty()) parts.sessions.DropPrompt(lock);
  } else {
    parts.sessions.DropPrompt(lock);
  }
  parts.pending.Mark(lock, lock.prompt.remaining(), Reservation());
}

}  // namespace

absl::Status CheckHints(const InsertRequest& request) {
  if (request.expected_reuse != ExpectedReuse::kEnded ||
      request.retain_seconds == 0) {
    return absl::OkStatus();
  }
  return MakeError(Reason::kInvalidField, Subject::kRetainSeconds,
                   absl::StrCat(request.retain_seconds,
                                ", but expected_reuse says that the prefix "
                                "has ended"));
}

absl::Status CheckAnchor(const InsertRequest& request) {
  if (request.anchor != LockId()) {
    if (request.after == PrefixHandle()) return absl::OkStatus();
    return MakeError(Reason::kInvalidField, Subject::kHandle,
                     "it says where the insert begins, and so does the lock");
  }
  if (request.lock_action != LockAction::kKeep) {
    return MakeError(Reason::kInvalidField, Subject::kLockAction,
                     "it is set, but no lock is named");
  }
  if (request.prompt_tokens > 0) {
    return MakeError(
        Reason::kInvalidField, Subject::kPromptTokens,
        absl::StrCat(request.prompt_tokens, ", but no lock is named"));
  }
  return absl::OkStatus();
}

absl::StatusOr<InsertSource> FindInsertSource(const CacheParts& parts,
                                              const InsertRequest& request,
                                              const Session& session) {
  InsertSource source{.lookahead = LookaheadOf(request.ns)};
  if (request.anchor == LockId()) return source;
  ASSIGN_OR_RETURN(
      const LockRecord* const lock,
      parts.sessions.GetLock(session, request.anchor, Subject::kAnchor));
  source.lookahead = lock->node->ns->lookahead();
  if (request.prompt_tokens == 0) return source;
  source.prompt = lock->prompt;
  const size_t held = source.prompt.remaining().size();
  if (request.prompt_tokens > held) {
    return MakeError(Reason::kInvalidField, Subject::kPromptTokens,
                     absl::StrCat(request.prompt_tokens, ", but lock ",
                                  request.anchor.value(), " holds ", held,
                                  " tokens of a prompt"));
  }
  return source;
}

absl::StatusOr<InsertTarget> FindTarget(const CacheParts& parts,
                                        const InsertRequest& request,
                                        const Session& session) {
  if (request.anchor != LockId()) {
    ASSIGN_OR_RETURN(
        LockRecord* const anchor,
        parts.sessions.GetLock(session, request.anchor, Subject::kAnchor));
    Node& start = *anchor->node;
    if (request.ns != NamespaceKey() && request.ns != *start.ns->key) {
      return MakeError(Reason::kNamespaceMismatch, Subject::kNamespace,
                       "it is not the namespace of the lock");
    }
    return InsertTarget{anchor, start.ns, EndOf(start)};
  }
  if (request.after != PrefixHandle()) {
    ASSIGN_OR_RETURN(const TreePosition start,
                     FindHandle(parts.tree, request.ns, request.after));
    return InsertTarget{nullptr, start.node->ns, start};
  }
  Namespace* ns = parts.tree.FindNamespace(request.ns);
  return InsertTarget{nullptr, ns,
                      ns == nullptr ? TreePosition{} : EndOf(*ns->root)};
}

// In a bigram namespace, the last unit before the insert ends with the first
// token of the insert. Any other token would make pages that no prompt can ever
// match.
absl::Status CheckContinuation(const InsertTarget& target, Token first,
                               uint32_t page_tokens) {
  if (target.ns == nullptr || target.start.pages() == 0 ||
      target.ns->lookahead() == 0) {
    return absl::OkStatus();
  }
  const Node& node = *target.start.node;
  const Token last = node.tokens(
      page_tokens)[size_t{target.start.pages_in_node} * page_tokens];
  if (first == last) return absl::OkStatus();
  return MakeError(Reason::kInvalidField, Subject::kTokens,
                   "the first token is not the last one of the prefix that the "
                   "insert continues");
}

absl::Status CheckAlignment(const InsertRequest& request, uint32_t lookahead,
                            uint32_t page_tokens) {
  const size_t tokens = request.prompt_tokens + request.tokens.size();
  const uint32_t whole_pages = WholePages(lookahead, tokens, page_tokens);
  if (request.pages.size() == whole_pages) return absl::OkStatus();
  return MakeError(
      Reason::kInvalidAlignment, Subject::kPages,
      absl::StrCat(request.pages.size(), " ids, but ", tokens, " tokens are ",
                   whole_pages, " whole pages of ", page_tokens,
                   lookahead > 0 ? " pairs of neighbouring tokens" : ""));
}

SegmentRef MakeSegment(const InsertRequest& request, const InsertSource& source,
                       uint32_t page_tokens, SegmentArena* arena,
                       size_t first_page, size_t pages) {
  if (pages == 0) return SegmentRef();
  const size_t begin = first_page * page_tokens;
  const size_t end =
      begin + SpelledTokens(source.lookahead, pages, page_tokens);
  const auto part = [&](std::span<const Token> tokens, size_t offset) {
    const size_t from =
        std::min(tokens.size(), begin - std::min(begin, offset));
    const size_t to = std::min(tokens.size(), end - std::min(end, offset));
    return tokens.subspan(from, to - from);
  };
  return SegmentRef::Copy(
      part(source.prompt.remaining().first(request.prompt_tokens), 0),
      part(request.tokens, request.prompt_tokens),
      request.pages.subspan(first_page, pages), arena);
}

absl::StatusOr<SegmentRef> MakeSegment(const InsertRequest& request,
                                       const InsertSource& source,
                                       uint32_t page_tokens,
                                       SegmentArena* arena) {
  RETURN_IF_ERROR(CheckAlignment(request, source.lookahead, page_tokens));
  return MakeSegment(request, source, page_tokens, arena, 0,
                     request.pages.size());
}

absl::Status Publish(CacheParts& parts, const InsertRequest& request,
                     const InsertSource& source, Session& session,
                     SegmentRef& segment, InsertResult& result) {
  ASSIGN_OR_RETURN(const InsertTarget target,
                   FindTarget(parts, request, session));
  if (request.prompt_tokens > 0 && target.anchor->prompt != source.prompt) {
    return MakeError(Reason::kLockMoved, Subject::kAnchor,
                     absl::StrCat("lock ", request.anchor.value(),
                                  " was moved by another call meanwhile"));
  }
  if (segment) {
    RETURN_IF_ERROR(
        CheckContinuation(target, segment->tokens()[0], parts.page_tokens()));
  }
  std::vector<PageId>& canonical = result.canonical_pages;
  TreePosition position = target.start;
  if (target.ns != nullptr && segment) {
    position = parts.tree.Walk(target.start, TokensOf(segment),
                               segment->page_count(), &canonical);
  }
  RETURN_IF_ERROR(CheckPages(parts, request, session, canonical));
  const uint32_t quota_class = target.ns == nullptr
                                   ? parts.quota_classes.ClassOf(request.ns)
                                   : target.ns->quota_class;
  RETURN_IF_ERROR(parts.budget.CheckMayCache(
      request.pages.subspan(canonical.size()), quota_class));

  RequestFacts facts =
      FactsOf(parts, request, target, static_cast<uint32_t>(canonical.size()));
  position =
      AddNewPages(parts, request, segment, position, canonical.size(), facts);
  if (target.anchor != nullptr) target.anchor->request = facts;
  if (position.node != nullptr) {
    Node& end = position.LastWholeNode();
    if (request.lock_action != LockAction::kRelock && !request.is_part) {
      parts.journal.NoteHit(end);
    }
    if (!request.is_part) TakeHints(parts, request, end);
  }
  if (position.node != nullptr && position.pages() > 0) {
    result.handle = HandleTo(parts.tree, position);
  }
  result.existing_tokens =
      static_cast<uint32_t>(canonical.size()) * parts.page_tokens();
  result.freed_duplicates = FreeDuplicates(parts, request, session, canonical);
  for (PageId page : request.free_pages) {
    parts.holdings.FreePage(session, page);
  }
  if (request.lock_action == LockAction::kRelock) {
    MoveAnchor(parts, *target.anchor, *position.node, request);
  }
  // If the process dies before this, the new pages are still reserved, so that
  // the next process does not hand them out (RadixTree::Recover).
  parts.pool.Seal(session.reserved, request.pages.subspan(canonical.size()));
  if (request.lock_action == LockAction::kUnlock) {
    parts.holdings.ReleaseLock(*target.anchor, LockEnd::kUnlocked);
  }
  if (!request.is_part) ++parts.journal.counters().inserts;
  return absl::OkStatus();
}

}  // namespace pando
