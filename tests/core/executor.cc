// The requests that Executor makes. executor_support.cc has the parts that
// choose and compare.

#include "tests/core/executor.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tests/core/program_namespaces.h"

namespace pando::program {

void Executor::operator()(const Match& match) {
  const Start start = StartOf(match.prompt, match.after);
  MatchRequest request{.session = sessions_[match.slot],
                       .ns = start.ns,
                       .tokens = start.tokens,
                       .max_tokens = match.max_tokens,
                       .lock = match.lock,
                       .reserve_tokens = match.reserve_tokens,
                       .touch = match.touch,
                       .after = start.after.real,
                       .wait = match.wait,
                       .request_id = RequestId(match.request_id)};
  const auto real = real_.Match(request);
  ReferenceCache::Choice choice;
  if (real.ok()) choice = {real->lock, real->reserved, real->wait};
  request.after = start.after.model;
  const auto model = model_.Match(request, choice);
  if (!CompareStatus(real.status(), model.status())) return;
  differences_.Compare("matched_tokens", real->matched_tokens,
                       model->matched_tokens);
  differences_.Compare("pages", real->pages, model->pages);
  differences_.Compare("lock", real->lock, model->lock);
  differences_.Compare("reserved", real->reserved, model->reserved);
  differences_.Compare("is_pending", real->is_pending, model->is_pending);
  differences_.Compare("wait", real->wait, model->wait);
  CompareHandles(real->handle, model->handle);
  CompareRoom(real->room);
  if (real->lock != LockId()) Remember(seen_locks_, real->lock);
  if (real->wait != WaitId()) Remember(seen_waits_, real->wait);
}

void Executor::operator()(const Score& score) {
  const Start start = StartOf(score.prompt, score.after);
  PrefixQuery query{.ns = start.ns,
                    .tokens = start.tokens,
                    .max_tokens = score.max_tokens,
                    .after = start.after.real};
  const auto real = real_.Score(query);
  query.after = start.after.model;
  const auto model = model_.Score(query);
  if (!CompareStatus(real.status(), model.status())) return;
  differences_.Compare("matched_tokens", real->matched_tokens,
                       model->matched_tokens);
  differences_.Compare("is_pending", real->is_pending, model->is_pending);
}

void Executor::operator()(const CancelWait& cancel) {
  if (seen_waits_.empty()) return;
  const WaitId wait = seen_waits_[cancel.index % seen_waits_.size()];
  differences_.Compare("cancelled", real_.CancelWait(wait),
                       model_.CancelWait(wait));
}

void Executor::operator()(const Insert& insert) {
  const SessionId session = sessions_[insert.slot];
  const LockId anchor = Choose(insert.slot, insert.anchor);
  Start start = StartOf(insert.prompt, insert.after);
  if (anchor != LockId()) {
    start.place = model_.StartOf(start.ns, anchor, {});
    if (!insert.names_namespace) start.ns = NamespaceKey();
    start.tokens = Spell(insert.prompt, start.place, Forgery::kNone);
  }
  std::vector<Token> all_tokens = model_.HeldPrompt(anchor);
  auto prompt_tokens =
      static_cast<uint32_t>(insert.prompt_tokens % (all_tokens.size() + 2));
  all_tokens.resize(prompt_tokens);
  all_tokens.insert(all_tokens.end(), start.tokens.begin(), start.tokens.end());

  std::vector<PageId> reserved = model_.ReservedPages(session);
  std::reverse(reserved.begin(), reserved.end());  // to pop off the back
  const auto take = [&] {
    const PageId page = reserved.back();
    reserved.pop_back();
    return page;
  };
  std::vector<PageId> pages;
  if (insert.reuse_cached) pages = model_.CachedPages(start.place, all_tokens);
  const size_t whole_pages =
      UnitsOf(start.place.ns, all_tokens).size() / page_tokens_;
  while (pages.size() < whole_pages && !reserved.empty()) {
    pages.push_back(take());
  }
  if (pages.size() < whole_pages) {
    const auto count = static_cast<uint32_t>(pages.size()) * page_tokens_ +
                       (start.place.ns.bigram ? 1 : 0);
    prompt_tokens = std::min(prompt_tokens, count);
    start.tokens.resize(count - prompt_tokens);
  }
  Spoil(pages, insert.fault);
  std::vector<PageId> free_pages;
  while (free_pages.size() < insert.free_pages && !reserved.empty()) {
    free_pages.push_back(take());
  }

  InsertRequest request{.session = session,
                        .ns = start.ns,
                        .tokens = start.tokens,
                        .pages = pages,
                        .anchor = anchor,
                        .lock_action = insert.lock_action,
                        .keep_duplicates = insert.keep_duplicates,
                        .free_pages = free_pages,
                        .prompt_tokens = prompt_tokens,
                        .after = start.after.real,
                        .priority = insert.priority,
                        .output_tokens = insert.output_tokens,
                        .expected_reuse = insert.expected_reuse,
                        .retain_seconds = insert.retain_seconds,
                        .request_id = RequestId(insert.request_id)};
  const auto real = real_.Insert(request);
  request.after = start.after.model;
  const auto model = model_.Insert(request);
  if (!CompareStatus(real.status(), model.status())) return;
  differences_.Compare("existing_tokens", real->existing_tokens,
                       model->existing_tokens);
  differences_.Compare("canonical_pages", real->canonical_pages,
                       model->canonical_pages);
  differences_.Compare("freed_duplicates", real->freed_duplicates,
                       model->freed_duplicates);
  CompareHandles(real->handle, model->handle);
  CompareRoom(real->room);
}

void Executor::operator()(const Lock& lock) {
  const Start start = StartOf(lock.prompt, lock.after);
  LockRequest request{.session = sessions_[lock.slot],
                      .ns = start.ns,
                      .tokens = start.tokens,
                      .after = start.after.real,
                      .request_id = RequestId(lock.request_id)};
  const auto real = real_.Lock(request);
  request.after = start.after.model;
  const auto model = model_.Lock(request, real.ok() ? real->lock : LockId());
  if (!CompareStatus(real.status(), model.status())) return;
  differences_.Compare("lock", real->lock, model->lock);
  differences_.Compare("locked_tokens", real->locked_tokens,
                       model->locked_tokens);
  CompareHandles(real->handle, model->handle);
  Remember(seen_locks_, real->lock);
}

void Executor::operator()(const Unlock& unlock) {
  const SessionId session = sessions_[unlock.slot];
  const std::vector<LockId> locks(unlock.twice ? 2 : 1,
                                  Choose(unlock.slot, unlock.lock));
  const RequestId request_id(unlock.request_id);
  CompareStatus(real_.Unlock(session, locks, request_id),
                model_.Unlock(session, locks, request_id));
}

void Executor::operator()(const Allocate& allocate) {
  const AllocateRequest request{.session = sessions_[allocate.slot],
                                .ns = NamespaceOf(allocate.ns),
                                .pages = allocate.pages,
                                .min_pages = allocate.min_pages,
                                .request_id = RequestId(allocate.request_id)};
  const auto real = real_.Allocate(request);
  ReferenceCache::Choice choice;
  if (real.ok()) choice.pages = real->pages;
  const auto model = model_.Allocate(request, choice);
  if (!CompareStatus(real.status(), model.status())) return;
  differences_.Compare("allocated", real->pages, model->pages);
  CompareRoom(real->room);
}

void Executor::operator()(const Free& free) {
  const SessionId session = sessions_[free.slot];
  std::vector<PageId> pages = model_.ReservedPages(session);
  pages.resize(std::min<size_t>(pages.size(), free.pages));
  Spoil(pages, free.fault);
  const RequestId request_id(free.request_id);
  CompareStatus(real_.Free(session, pages, request_id),
                model_.Free(session, pages, request_id));
}

void Executor::operator()(const Evict& evict) {
  differences_.Compare("evicted", real_.Evict(evict.pages),
                       model_.Evict(evict.pages));
}

void Executor::operator()(const EvictToWatermark&) {
  differences_.Compare("evicted", real_.EvictToWatermark(),
                       model_.EvictToWatermark());
}

void Executor::operator()(const Flush&) {
  CompareFlush(real_.Flush(), model_.Flush());
}

void Executor::operator()(const FlushNamespace& flush) {
  const NamespaceKey& ns = NamespaceOf(flush.ns);
  CompareFlush(real_.FlushNamespace(ns), model_.FlushNamespace(ns));
}

void Executor::operator()(const SetPolicy& set) {
  const EvictionPolicyKind before = std::exchange(wanted_policy_, set.policy);
  policy_change_.emplace(set.policy, kNodesAStep);
  differences_.Compare("policy", EvictionPolicyName(StepPolicy()),
                       EvictionPolicyName(before));
}

// The model changes its policy in one step at the moment when the real cache
// begins to use the new one. The model learns while the real cache does.
EvictionPolicyKind Executor::StepPolicy() {
  const EvictionPolicyKind before = real_.Stats().eviction_policy;
  const bool is_over = real_.Step(*policy_change_);
  const EvictionPolicyKind previous = policy_change_->previous();
  const CacheStats stats = real_.Stats();
  const EvictionPolicyKind now = stats.eviction_policy;
  const bool must_learn = learns_always_ || now == EvictionPolicyKind::kReuse;
  const bool may_learn =
      must_learn || (!is_over && wanted_policy_ == EvictionPolicyKind::kReuse);
  const bool learns = stats.reuse.has_value();
  differences_.Compare("learns", learns, learns ? may_learn : must_learn);
  model_.SetLearning(learns);
  if (is_over) policy_change_.reset();
  if (now == before) return previous;
  differences_.Compare("policy in use", EvictionPolicyName(now),
                       EvictionPolicyName(wanted_policy_));
  model_.SetEvictionPolicy(now);
  return previous;
}

void Executor::operator()(const OpenSession& open) {
  SessionId& session = sessions_[open.slot];
  if (model_.IsLive(session)) return;
  session = SessionId(++opened_);
  real_.OpenSession(session, absl::StrCat("worker ", opened_));
  model_.OpenSession(session);
}

void Executor::operator()(const AttachSession& attach) {
  const SessionId session = sessions_[attach.slot];
  std::optional<WriterId> writer;
  if (attach.writer > 0) writer = WriterId(attach.writer);
  CompareStatus(real_.AttachSession(session, writer),
                model_.AttachSession(session, writer));
}

void Executor::operator()(const CloseSession& close) {
  real_.CloseSession(sessions_[close.slot]);
  model_.CloseSession(sessions_[close.slot]);
}

void Executor::operator()(const SuspendSession& suspend) {
  const absl::Time lost_at = now_ + absl::Seconds(suspend.grace_seconds);
  real_.SuspendSession(sessions_[suspend.slot], lost_at);
  model_.SuspendSession(sessions_[suspend.slot], lost_at);
}

void Executor::operator()(const ResumeSession& resume) {
  const SessionId session = sessions_[resume.slot];
  CompareStatus(real_.ResumeSession(session).status(),
                model_.ResumeSession(session));
}

void Executor::operator()(const WriterGone& end) {
  real_.WriterGone(WriterId(end.writer));
  model_.WriterGone(WriterId(end.writer));
}

// A session's number is the same as its id here.
void Executor::operator()(const FreeQuarantine& free) {
  const auto number =
      SessionNumber(static_cast<uint32_t>(sessions_[free.slot].value()));
  const auto real = real_.FreeQuarantine(number);
  const auto model = model_.FreeQuarantine(number);
  CompareStatus(real.status(), model.status());
  if (real.ok() && model.ok()) {
    differences_.Compare("freed pages", *real, *model);
  }
}

void Executor::operator()(const ExpireSessions& expire) {
  now_ += absl::Seconds(expire.passed_seconds);
  const absl::Duration quarantine = absl::Seconds(expire.quarantine_seconds);
  real_.ExpireSessions(now_, quarantine);
  model_.ExpireSessions(now_, quarantine);
}

}  // namespace pando::program
