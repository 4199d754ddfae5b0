#include "core/match/match.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/nodes/step_sizes.h"
#include "core/requests/errors.h"
#include "core/tree/prefix_search.h"

namespace pando {
namespace {

// The request's tokens after the match. They are empty if max_tokens made the
// match end before the request's handle, because those tokens were not sent.
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

// The needs of an admission in addition to the match.
struct Admission {
  uint32_t quota_class;
  uint32_t missing_pages;  // to be reserved
  size_t held_tokens;      // tokens that the lock will hold
};

// The tokens that the lock of a match of `matched_tokens` holds for later
// inserts: those after the match that the reserved pages have room for.
std::span<const Token> TokensToHold(const MatchRequest& request,
                                    uint32_t matched_tokens) {
  if (request.reserve_tokens <= matched_tokens) return {};
  const auto rest = TokensAfter(matched_tokens, request);
  const size_t room =
      size_t{request.reserve_tokens} - matched_tokens + LookaheadOf(request.ns);
  return rest.first(std::min(rest.size(), room));
}

// Whether `session` may have what the request asks for.
absl::Status CheckAdmission(CacheParts& parts, const FoundPrefix& found,
                            const Session& session,
                            const Admission& admission) {
  RETURN_IF_ERROR(parts.sessions.CheckMoreLocks(session));
  RETURN_IF_ERROR(
      parts.sessions.CheckMorePages(session, admission.missing_pages));
  RETURN_IF_ERROR(parts.sessions.CheckMoreBytes(
      session, admission.held_tokens * sizeof(Token)));
  if (admission.missing_pages == 0) return absl::OkStatus();
  // The lock that is about to be taken keeps the match from being evicted.
  const uint32_t held_back =
      found.ns == nullptr ? 0 : RadixTree::EvictablePagesUpTo(found.position);
  return parts.budget.CheckRoom(admission.missing_pages, admission.quota_class,
                                held_back);
}

// Takes the lock and the first of the pages that CheckAdmission allows. Returns
// the node that is locked.
Node& Admit(CacheParts& parts, const FoundPrefix& found,
            const MatchRequest& request, Session& session,
            const Admission& admission, MatchResult& result) {
  Node& end = found.ns == nullptr
                  ? *parts.tree.FindOrMakeNamespace(request.ns).root
                  : parts.tree.NodeEndingAt(found.position);
  if (request.touch) parts.journal.NoteReuse(end, parts.tree.time());
  LockRecord& lock = parts.holdings.TakeLock(session, end);
  if (request.touch) {
    lock.request = parts.tree.BeginRequest(PromptTokens(QueryOf(request)),
                                           result.matched_tokens);
  }
  parts.sessions.CountPrompt(lock, admission.held_tokens);
  result.lock = SessionTable::IdOf(lock);
  if (request.touch) parts.tree.Touch(end, {.request = &lock.request});
  parts.budget.Reserve(std::min(admission.missing_pages, kStepReservedPages),
                       admission.quota_class, session.reserved,
                       result.reserved);
  if (!result.reserved.empty()) {
    parts.pending.Mark(lock, TokensAfter(result.matched_tokens, request),
                       parts.pool.reservation(result.reserved.front()));
  }
  return end;
}

}  // namespace

absl::Status CheckMatch(const MatchRequest& request) {
  if (request.lock) return absl::OkStatus();
  if (request.reserve_tokens > 0) {
    return MakeError(
        Reason::kInvalidField, Subject::kReserveTokens,
        absl::StrCat(request.reserve_tokens, ", which needs lock = true"));
  }
  if (request.request_id != RequestId()) {
    return MakeError(
        Reason::kInvalidField, Subject::kRequestId,
        absl::StrCat(request.request_id.value(), ", which needs lock = true"));
  }
  if (request.wait) {
    return MakeError(Reason::kInvalidField, Subject::kWait,
                     "it is set, which needs lock = true");
  }
  return absl::OkStatus();
}

absl::Status MatchAndLock(CacheParts& parts, const MatchRequest& request,
                          Session* session, MatchResult& result,
                          MatchedReservation& reservation) {
  const PrefixQuery query = QueryOf(request);
  ASSIGN_OR_RETURN(const FoundPrefix found,
                   FindPrefix(parts.tree, query, &result.pages));
  PendingPage* const pending = parts.pending.Find(found, query);
  result.is_pending = pending != nullptr;
  if (pending != nullptr && request.wait) {
    result.wait = parts.pending.Wait(*pending, session->id);
    result.pages.clear();
    return absl::OkStatus();
  }
  const uint32_t page_tokens = parts.page_tokens();
  const uint32_t matched_tokens = found.pages * page_tokens;
  const uint32_t wanted_pages = PagesFor(request.reserve_tokens, page_tokens);
  const Admission admission = {
      .quota_class = found.ns == nullptr
                         ? parts.quota_classes.ClassOf(request.ns)
                         : found.ns->quota_class,
      .missing_pages = wanted_pages - std::min(wanted_pages, found.pages),
      .held_tokens = TokensToHold(request, matched_tokens).size()};
  if (session != nullptr) {
    RETURN_IF_ERROR(CheckAdmission(parts, found, *session, admission));
  }

  result.matched_tokens = matched_tokens;
  TreePosition end = found.position;
  uint32_t loaded_pages = 0;
  if (session != nullptr) {
    end = EndOf(Admit(parts, found, request, *session, admission, result));
    reservation = {admission.quota_class, admission.missing_pages};
  } else if (request.touch && found.ns != nullptr) {
    parts.journal.NoteReuse(end.LastWholeNode(), parts.tree.time());
    parts.tree.Touch(end.LastWholeNode());
  }
  if (result.matched_tokens > 0) {
    result.handle = HandleTo(parts.tree, end);
    if (request.touch) {
      loaded_pages = parts.tree.TakeLoaded(end.LastWholeNode());
    }
  }
  parts.journal.NoteMatch(found, query, admission.quota_class, page_tokens,
                          request.touch, loaded_pages);
  return absl::OkStatus();
}

HeldPrompt CopyPrompt(const MatchRequest& request, const MatchResult& result,
                      SegmentArena* arena) {
  const auto held = TokensToHold(request, result.matched_tokens);
  if (held.empty()) return {};
  SegmentRef tokens = SegmentRef::Copy(held, {}, arena);
  tokens.Publish();
  return {.tokens = std::move(tokens)};
}

void HoldPrompt(CacheParts& parts, const MatchRequest& request,
                const MatchResult& result, HeldPrompt prompt) {
  const Session* session = parts.sessions.Find(request.session);
  if (session == nullptr) return;
  LockRecord* lock = parts.sessions.FindLock(*session, result.lock);
  if (lock == nullptr ||
      lock->node->end_pages() * parts.page_tokens() != result.matched_tokens) {
    return;
  }
  parts.sessions.HoldPrompt(*lock, std::move(prompt));
}

}  // namespace pando
