#include "core/match/inserting.h"

#include <algorithm>

#include "base/status_macros.h"
#include "core/match/repeats.h"
#include "core/requests/namespace.h"
#include "core/tree/prefix_search.h"

namespace pando {

Inserting::Inserting(const InsertRequest& request, uint32_t page_tokens,
                     SegmentArena* arena)
    : request_(request),
      page_tokens_(page_tokens),
      arena_(arena),
      stage_(request.anchor == LockId() && request.request_id == RequestId() &&
                     !has_many_pages()
                 ? Stage::kPublish
                 : Stage::kBegin),
      source_{.lookahead = LookaheadOf(request.ns)},
      status_(CheckHints(request)),
      free_pages_(request.free_pages) {
  if (status_.ok()) status_ = CheckAnchor(request);
  result_.canonical_pages.reserve(request.pages.size());
}

bool Inserting::has_many_pages() const {
  return request_.pages.size() + request_.free_pages.size() >
         kStepInsertedPages;
}

size_t Inserting::PartPages() const {
  return std::min<size_t>(request_.pages.size() - next_, kStepInsertedPages);
}

void Inserting::Prepare() {
  if (!status_.ok()) return;
  if (stage_ == Stage::kPublish) {
    absl::StatusOr<SegmentRef> segment =
        MakeSegment(request_, source_, page_tokens_, arena_);
    status_ = segment.status();
    if (segment.ok()) segment_ = *std::move(segment);
  } else if (stage_ == Stage::kParts ||
             (stage_ == Stage::kCheck && !is_past_cached_)) {
    segment_ = MakeSegment(request_, source_, page_tokens_, arena_, next_,
                           PartPages());
  }
}

bool Inserting::Step(CacheParts& parts) {
  if (!status_.ok() && stage_ != Stage::kFree) return true;
  const absl::StatusOr<Session*> session =
      parts.sessions.GetForStep(request_.session);
  if (!session.ok()) {  // its end frees what is not published
    status_ = session.status();
    return true;
  }
  switch (stage_) {
    case Stage::kBegin:
      return Begin(parts, **session);
    case Stage::kPublish:
      return PublishAtOnce(parts, **session);
    case Stage::kCheck:
      return CheckPart(parts, **session);
    case Stage::kParts:
      return PublishPart(parts, **session);
    case Stage::kFree:
      return FreeRest(parts, **session);
    case Stage::kStop:
      break;
  }
  EndSteps(**session, request_.request_id);
  return true;
}

bool Inserting::Begin(CacheParts& parts, Session& session) {
  if (IsUnderWay(session, request_.request_id)) return false;
  const absl::StatusOr<const InsertResult*> first =
      FindAnswer<InsertResult>(parts, session, request_.request_id);
  status_ = first.status();
  if (!first.ok()) return true;
  if (*first != nullptr) {
    result_ = RepeatedNow(parts, **first);
    return true;
  }
  absl::StatusOr<InsertSource> source =
      FindInsertSource(parts, request_, session);
  status_ = source.status();
  if (!source.ok()) return true;
  source_ = *std::move(source);
  if (!has_many_pages()) {
    stage_ = Stage::kPublish;
    return false;
  }
  status_ = CheckAlignment(request_, source_.lookahead, page_tokens_);
  if (!status_.ok()) return true;
  anchors_ = source_.prompt;
  BeginSteps(session, request_.request_id);
  stage_ = Stage::kCheck;
  return false;
}

bool Inserting::PublishAtOnce(CacheParts& parts, Session& session) {
  if (IsUnderWay(session, request_.request_id)) return false;
  const absl::StatusOr<const InsertResult*> first =
      FindAnswer<InsertResult>(parts, session, request_.request_id);
  status_ = first.status();
  if (!first.ok()) return true;
  if (*first != nullptr) {
    result_ = RepeatedNow(parts, **first);
    return true;
  }
  status_ = Publish(parts, request_, source_, session, segment_, result_);
  if (!status_.ok()) return true;
  result_.room = RoomOf(parts);
  KeepAnswer(parts, session, request_.request_id, result_);
  return true;
}

bool Inserting::CheckPart(CacheParts& parts, Session& session) {
  status_ = CheckPages(parts, session);
  if (!status_.ok()) {
    EndSteps(session, request_.request_id);
    return true;
  }
  if (next_ < request_.pages.size() || !free_pages_.empty()) return false;
  next_ = 0;
  free_pages_ = request_.free_pages;
  stage_ = Stage::kParts;
  return false;
}

absl::Status Inserting::CheckPages(CacheParts& parts, Session& session) {
  const size_t count = PartPages();
  if (count == 0) {
    const auto next = free_pages_.first(
        std::min<size_t>(free_pages_.size(), kStepInsertedPages));
    free_pages_ = free_pages_.subspan(next.size());
    return listed_.CheckMore(parts.pool, session.reserved, next);
  }
  const std::span<const PageId> pages = request_.pages.subspan(next_, count);
  std::vector<PageId> canonical;
  canonical.reserve(count);
  if (!is_past_cached_) RETURN_IF_ERROR(WalkPart(parts, session, canonical));
  std::vector<PageId> own;
  own.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (i >= canonical.size() || pages[i] != canonical[i]) {
      own.push_back(pages[i]);
    }
  }
  RETURN_IF_ERROR(listed_.CheckMore(parts.pool, session.reserved, own));
  const uint32_t quota_class = parts.quota_classes.ClassOf(ns_);
  joining_ +=
      parts.budget.CountJoining(pages.subspan(canonical.size()), quota_class);
  next_ += count;
  return parts.budget.CheckMayJoin(joining_, quota_class);
}

absl::Status Inserting::WalkPart(const CacheParts& parts,
                                 const Session& session,
                                 std::vector<PageId>& canonical) {
  std::optional<TreePosition> start;
  if (next_ == 0) {
    ASSIGN_OR_RETURN(const InsertTarget target,
                     FindTarget(parts, request_, session));
    ns_ = target.ns == nullptr ? request_.ns : *target.ns->key;
    RETURN_IF_ERROR(
        CheckContinuation(target, segment_->tokens()[0], page_tokens_));
    if (target.ns != nullptr) start = target.start;
  } else if (const auto found = FindHandle(parts.tree, ns_, position_);
             found.ok()) {
    start = *found;
  }
  if (start.has_value()) {
    const TreePosition end =
        parts.tree.Walk(*start, {segment_->tokens(), segment_->token_count()},
                        segment_->page_count(), &canonical);
    if (end.pages() > 0) position_ = HandleTo(parts.tree, end);
  }
  is_past_cached_ = canonical.size() < segment_->page_count();
  return absl::OkStatus();
}

// A part begins at the anchor if that moves along with the parts, else at the
// handle where the last part ended.
InsertRequest Inserting::PartRequest() const {
  const size_t count = PartPages();
  const bool is_last = next_ + count == request_.pages.size();
  const bool has_anchor =
      next_ == 0 || request_.lock_action != LockAction::kKeep;
  const size_t begin = next_ * page_tokens_;
  const size_t spelled =
      is_last ? request_.prompt_tokens + request_.tokens.size() - begin
              : SpelledTokens(source_.lookahead, count, page_tokens_);
  const size_t held =
      std::min(spelled, request_.prompt_tokens -
                            std::min<size_t>(request_.prompt_tokens, begin));
  const size_t sent = begin - std::min<size_t>(begin, request_.prompt_tokens);
  return {
      .session = request_.session,
      .ns = next_ == 0 ? request_.ns : ns_,
      .tokens = request_.tokens.subspan(sent, spelled - held),
      .pages = request_.pages.subspan(next_, count),
      .anchor = has_anchor ? request_.anchor : LockId(),
      .lock_action =
          has_anchor && !is_last && request_.lock_action != LockAction::kKeep
              ? LockAction::kRelock
              : request_.lock_action,
      .keep_duplicates = request_.keep_duplicates,
      .prompt_tokens = has_anchor ? static_cast<uint32_t>(held) : uint32_t{0},
      .after = next_ == 0                                  ? request_.after
               : has_anchor && request_.anchor != LockId() ? PrefixHandle()
                                                           : position_,
      .priority = request_.priority,
      .output_tokens = request_.output_tokens,
      .expected_reuse = request_.expected_reuse,
      .retain_seconds = request_.retain_seconds,
      .is_load = request_.is_load,
      .is_part = !is_last};
}

bool Inserting::PublishPart(CacheParts& parts, Session& session) {
  const InsertRequest request = PartRequest();
  InsertResult part;
  absl::Status published = CheckAnchorStays(parts, session);
  if (published.ok()) {
    published = Publish(parts, request,
                        {.lookahead = source_.lookahead, .prompt = anchors_},
                        session, segment_, part);
  }
  if (published.ok()) {
    NotePart(parts, session, part);
    if (next_ < request_.pages.size()) return false;
    stage_ = Stage::kFree;
    return free_pages_.empty() && Finish(parts, session);
  }
  if (next_ == 0) {
    status_ = published;
    EndSteps(session, request_.request_id);
    return true;
  }
  GiveUp(parts, session, published);
  return false;
}

absl::Status Inserting::CheckAnchorStays(const CacheParts& parts,
                                         const Session& session) const {
  if (next_ == 0 || request_.lock_action == LockAction::kKeep) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      const LockRecord* const anchor,
      parts.sessions.GetLock(session, request_.anchor, Subject::kAnchor));
  if (HandleTo(parts.tree, EndOf(*anchor->node)) == position_) {
    return absl::OkStatus();
  }
  return MakeError(Reason::kLockMoved, Subject::kAnchor,
                   "it was moved by another call meanwhile");
}

void Inserting::NotePart(const CacheParts& parts, const Session& session,
                         const InsertResult& part) {
  const size_t cached = part.canonical_pages.size();
  const auto added =
      request_.pages.subspan(next_ + cached, PartPages() - cached);
  std::vector<PageId>& pages = result_.canonical_pages;
  pages.insert(pages.end(), part.canonical_pages.begin(),
               part.canonical_pages.end());
  if (cached > 0) existing_ = pages.size();
  pages.insert(pages.end(), added.begin(), added.end());
  result_.freed_duplicates += part.freed_duplicates;
  result_.handle = position_ = part.handle;
  next_ += PartPages();
  const LockRecord* const anchor =
      parts.sessions.FindLock(session, request_.anchor);
  anchors_ = anchor != nullptr ? anchor->prompt : HeldPrompt();
}

// The pages that cannot be published are freed as if they were evicted. If the
// anchor was to keep them (kRelock), the insert fails.
void Inserting::GiveUp(CacheParts& parts, Session& session,
                       const absl::Status& why) {
  if (request_.lock_action == LockAction::kRelock) status_ = why;
  if (request_.lock_action == LockAction::kUnlock) {
    LockRecord* const anchor =
        parts.sessions.FindLock(session, request_.anchor);
    if (anchor != nullptr) {
      parts.holdings.ReleaseLock(*anchor, LockEnd::kUnlocked);
    }
  }
  ++parts.journal.counters().inserts;
  unpublished_ = request_.pages.subspan(next_);
  stage_ = Stage::kFree;
}

bool Inserting::FreeRest(CacheParts& parts, Session& session) {
  if (!unpublished_.empty()) {
    FreeLast(parts, session, unpublished_);
    return false;
  }
  return FreeLast(parts, session, free_pages_) && Finish(parts, session);
}

bool Inserting::Finish(CacheParts& parts, Session& session) {
  EndSteps(session, request_.request_id);
  if (!status_.ok()) return true;
  result_.canonical_pages.resize(existing_);
  result_.existing_tokens = static_cast<uint32_t>(existing_) * page_tokens_;
  result_.room = RoomOf(parts);
  KeepAnswer(parts, session, request_.request_id, result_);
  return true;
}

std::optional<Operation> Inserting::operation() const {
  if (stage_ == Stage::kBegin) return std::nullopt;
  return Operation::kInsert;
}

bool Inserting::Abandon() {
  if (stage_ == Stage::kBegin || stage_ == Stage::kPublish) return false;
  if (stage_ == Stage::kCheck) stage_ = Stage::kStop;
  if (stage_ == Stage::kParts && tokens_.empty()) {
    tokens_.assign(request_.tokens.begin(), request_.tokens.end());
    request_.tokens = tokens_;
  }
  return true;
}

absl::StatusOr<InsertResult> Inserting::Take() {
  if (!status_.ok()) return status_;
  return std::move(result_);
}

}  // namespace pando
