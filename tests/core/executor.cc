#include "tests/core/executor.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/errors.h"
#include "tests/core/prompts.h"
#include "tests/core/stats_fields.h"

namespace pando::program {
namespace {

constexpr size_t kRememberedLocks = 16;

const NamespaceKey& NamespaceOf(uint8_t number) {
  static const std::array<NamespaceKey, kNamespaces> keys = {
      NamespaceKey{std::nullopt, std::nullopt}, NamespaceKey{"", std::nullopt},
      NamespaceKey{"bc", "a"}, NamespaceKey{"c", "ab"}};
  return keys[number % kNamespaces];
}

std::string Describe(const absl::Status& status) {
  const std::optional<Reason> reason = ReasonOf(status);
  return reason.has_value() ? std::string(ReasonName(*reason))
                            : std::string(status.ToString());
}

template <typename T>
std::string Describe(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string Describe(const std::vector<PageId>& pages) {
  std::string text;
  for (PageId page : pages) absl::StrAppend(&text, " ", page.value());
  return text;
}

}  // namespace

Executor::Executor(const PrefixCache::Options& options)
    : options_(options), real_(options), model_(options) {
  for (uint8_t slot = 0; slot < kSlots; ++slot) (*this)(OpenSession{slot});
}

std::vector<std::string> Executor::Run(const Operation& operation) {
  differences_.clear();
  std::visit([this](const auto& kind) { (*this)(kind); }, operation);
  CompareStats();
  for (const std::string& violation : real_.CheckInvariants()) {
    differences_.push_back(violation);
  }
  return differences_;
}

void Executor::operator()(const Match& match) {
  const std::vector<Token> tokens = Tokens(match.prompt);
  const MatchRequest request{.session = sessions_[match.slot],
                             .ns = NamespaceOf(match.prompt.ns),
                             .tokens = tokens,
                             .max_tokens = match.max_tokens,
                             .lock = match.lock,
                             .reserve_tokens = match.reserve_tokens,
                             .touch = match.touch};
  const auto real = real_.Match(request);
  ReferenceCache::Choice choice;
  if (real.ok()) choice = {real->lock, real->reserved};
  const auto model = model_.Match(request, choice);
  if (!CompareStatus(real.status(), model.status())) return;
  Compare("matched_tokens", real->matched_tokens, model->matched_tokens);
  Compare("pages", real->pages, model->pages);
  Compare("lock", real->lock, model->lock);
  Compare("reserved", real->reserved, model->reserved);
  if (match.lock) Remember(real->lock);
}

void Executor::operator()(const Insert& insert) {
  const SessionId session = sessions_[insert.slot];
  const LockId anchor = Choose(insert.slot, insert.anchor);
  const NamespaceKey& ns =
      NamespaceOf(insert.names_namespace ? insert.prompt.ns : 0);
  std::vector<Token> tokens = Tokens(insert.prompt);
  std::vector<Token> all_tokens = model_.HeldPrompt(anchor);
  auto prompt_tokens =
      static_cast<uint32_t>(insert.prompt_tokens % (all_tokens.size() + 2));
  all_tokens.resize(prompt_tokens);
  all_tokens.insert(all_tokens.end(), tokens.begin(), tokens.end());

  std::vector<PageId> reserved = model_.ReservedPages(session);
  std::reverse(reserved.begin(), reserved.end());  // to take from the back
  const auto take = [&] {
    const PageId page = reserved.back();
    reserved.pop_back();
    return page;
  };
  std::vector<PageId> pages;
  if (insert.reuse_cached) pages = model_.CachedPages(ns, anchor, all_tokens);
  const size_t whole_pages = all_tokens.size() / options_.page_tokens;
  while (pages.size() < whole_pages && !reserved.empty()) {
    pages.push_back(take());
  }
  if (pages.size() < whole_pages) {
    const auto count =
        static_cast<uint32_t>(pages.size()) * options_.page_tokens;
    prompt_tokens = std::min(prompt_tokens, count);
    tokens.resize(count - prompt_tokens);
  }
  Spoil(pages, insert.fault);
  std::vector<PageId> free_pages;
  while (free_pages.size() < insert.free_pages && !reserved.empty()) {
    free_pages.push_back(take());
  }

  const InsertRequest request{.session = session,
                              .ns = ns,
                              .tokens = tokens,
                              .pages = pages,
                              .anchor = anchor,
                              .lock_action = insert.lock_action,
                              .keep_duplicates = insert.keep_duplicates,
                              .free_pages = free_pages,
                              .prompt_tokens = prompt_tokens};
  const auto real = real_.Insert(request);
  const auto model = model_.Insert(request);
  if (!CompareStatus(real.status(), model.status())) return;
  Compare("existing_tokens", real->existing_tokens, model->existing_tokens);
  Compare("canonical_pages", real->canonical_pages, model->canonical_pages);
  Compare("freed_duplicates", real->freed_duplicates, model->freed_duplicates);
}

void Executor::operator()(const Lock& lock) {
  const SessionId session = sessions_[lock.slot];
  const NamespaceKey& ns = NamespaceOf(lock.prompt.ns);
  const std::vector<Token> tokens = Tokens(lock.prompt);
  const auto real = real_.Lock({session, ns, tokens});
  const auto model =
      model_.Lock(session, ns, tokens, real.ok() ? real->lock : LockId());
  if (!CompareStatus(real.status(), model.status())) return;
  Compare("locked_tokens", real->locked_tokens, model->locked_tokens);
  Remember(real->lock);
}

void Executor::operator()(const Unlock& unlock) {
  const SessionId session = sessions_[unlock.slot];
  const std::vector<LockId> locks(unlock.twice ? 2 : 1,
                                  Choose(unlock.slot, unlock.lock));
  CompareStatus(real_.Unlock(session, locks), model_.Unlock(session, locks));
}

void Executor::operator()(const Allocate& allocate) {
  const SessionId session = sessions_[allocate.slot];
  const auto real = real_.Allocate({session, NamespaceOf(0), allocate.pages});
  ReferenceCache::Choice choice;
  if (real.ok()) choice.pages = *real;
  CompareStatus(real.status(),
                model_.Allocate(session, allocate.pages, choice).status());
}

void Executor::operator()(const Free& free) {
  const SessionId session = sessions_[free.slot];
  std::vector<PageId> pages = model_.ReservedPages(session);
  pages.resize(std::min<size_t>(pages.size(), free.pages));
  Spoil(pages, free.fault);
  CompareStatus(real_.Free(session, pages), model_.Free(session, pages));
}

void Executor::operator()(const Evict& evict) {
  Compare("evicted", real_.Evict(evict.pages), model_.Evict(evict.pages));
}

void Executor::operator()(const Flush&) {
  const FlushResult real = real_.Flush();
  const FlushResult model = model_.Flush();
  Compare("evicted_pages", real.evicted_pages, model.evicted_pages);
  Compare("protected_pages", real.protected_pages, model.protected_pages);
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
  CompareStatus(real_.AttachSession(session), model_.AttachSession(session));
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
  CompareStatus(real_.ResumeSession(session), model_.ResumeSession(session));
}

void Executor::operator()(const ProcessGone& end) {
  real_.ProcessGone(sessions_[end.slot]);
  model_.ProcessGone(sessions_[end.slot]);
}

void Executor::operator()(const ExpireSessions& expire) {
  now_ += absl::Seconds(expire.passed_seconds);
  const absl::Duration quarantine = absl::Seconds(expire.quarantine_seconds);
  real_.ExpireSessions(now_, quarantine);
  model_.ExpireSessions(now_, quarantine);
}

std::vector<Token> Executor::Tokens(const Prompt& prompt) const {
  return SpellTokens(prompt.letters, options_.page_tokens, prompt.tail);
}

LockId Executor::Choose(uint8_t slot, const LockChoice& choice) const {
  switch (choice.kind) {
    case LockChoice::Kind::kNone:
      return LockId();
    case LockChoice::Kind::kHeld: {
      const std::vector<LockId> held = model_.LocksOf(sessions_[slot]);
      if (held.empty()) return LockId();
      return held[held.size() - 1 - choice.index % held.size()];
    }
    case LockChoice::Kind::kSeen:
      if (seen_locks_.empty()) return LockId();
      return seen_locks_[choice.index % seen_locks_.size()];
  }
  return LockId();
}

void Executor::Remember(LockId lock) {
  seen_locks_.push_front(lock);
  if (seen_locks_.size() > kRememberedLocks) seen_locks_.pop_back();
}

void Executor::Spoil(std::vector<PageId>& pages, Fault fault) const {
  if (pages.empty()) return;
  PageId& last = pages.back();
  switch (fault) {
    case Fault::kNone:
      break;
    case Fault::kPadding:
      last = kPaddingPage;
      break;
    case Fault::kOutOfRange:
      last = PageId(options_.capacity_pages);
      break;
    case Fault::kListedTwice:
      last = pages.front();
      break;
    case Fault::kSomeoneElses:
      last = PageId(last.value() % (options_.capacity_pages - 1) + 1);
      break;
    case Fault::kMissing:
      pages.pop_back();
      break;
  }
}

bool Executor::CompareStatus(const absl::Status& real,
                             const absl::Status& model) {
  Compare("status", Describe(real), Describe(model));
  ++(real.ok() ? succeeded_ : failed_);
  return real.ok() && model.ok();
}

template <typename T>
void Executor::Compare(std::string_view what, const T& real, const T& model) {
  if (real == model) return;
  differences_.push_back(absl::StrCat(std::string(what), ": real ",
                                      Describe(real), ", model ",
                                      Describe(model)));
}

void Executor::CompareStats() {
  const auto real = StatsFields(real_.Stats());
  const auto model = StatsFields(model_.Stats());
  for (size_t i = 0; i < real.size(); ++i) {
    Compare("stats", real[i], model[i]);
  }
}

}  // namespace pando::program
