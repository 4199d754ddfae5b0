// The parts of Executor that choose what a program names and compare answers.

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"
#include "tests/core/executor.h"
#include "tests/core/program_namespaces.h"
#include "tests/core/prompts.h"
#include "tests/core/stats_fields.h"

namespace pando::program {
namespace {

std::string Describe(const absl::Status& status) {
  const std::optional<Reason> reason = ReasonOf(status);
  return reason.has_value() ? std::string(ReasonName(*reason))
                            : std::string(status.ToString());
}

PrefixCache::Options WithListener(PrefixCache::Options options,
                                  std::vector<ReferenceFlights::Over>* over) {
  options.on_wait_over = [over](WaitId wait, PendingOutcome outcome) {
    over->emplace_back(wait, outcome);
  };
  return options;
}

}  // namespace

Executor::Executor(const PrefixCache::Options& options, uint64_t check_every,
                   Events events)
    : page_tokens_(options.page_tokens),
      capacity_pages_(options.capacity_pages),
      learns_always_(options.reuse.learns_always),
      check_every_(check_every),
      real_(WithListener(options, &waits_over_)),
      model_(options),
      wanted_policy_(options.eviction_policy) {
  if (events == Events::kComparedHere) {
    mirror_.emplace(options.page_tokens);
    real_.StartEvents();
  }
  for (uint8_t slot = 0; slot < kSlots; ++slot) (*this)(OpenSession{slot});
}

std::vector<std::string> Executor::Run(const Operation& operation) {
  if (policy_change_.has_value()) StepPolicy();
  std::visit([this](const auto& kind) { (*this)(kind); }, operation);
  CompareWaitsOver();
  CompareStats();
  // Checks invariants step by step between operations, and sometimes all at
  // once.
  const auto violations = real_.CheckInvariantsStep();
  for (const std::string& violation :
       violations.value_or(std::vector<std::string>())) {
    differences_.Add(violation);
  }
  if (++operations_ % check_every_ == 0) {
    for (const std::string& violation : real_.CheckInvariants()) {
      differences_.Add(violation);
    }
    if (mirror_.has_value()) CompareEvents(*mirror_);
  }
  return differences_.Take();
}

Executor::Start Executor::StartOf(const Prompt& prompt,
                                  const HandleChoice& choice) const {
  Start start;
  start.ns = NamespaceOf(prompt.ns);
  start.after = Choose(choice);
  const std::optional<NamespaceKey> ns = model_.NamespaceOf(start.after.model);
  if (ns.has_value() && choice.forgery != Forgery::kOtherNamespace) {
    start.ns = *ns;
  }
  start.place = model_.StartOf(start.ns, LockId(), start.after.model);
  start.tokens = Spell(prompt, start.place, choice.forgery);
  return start;
}

// In a bigram namespace, a prompt that follows a place repeats the second token
// of the place's last pair.
std::vector<Token> Executor::Spell(const Prompt& prompt, const Place& start,
                                   Forgery forgery) const {
  std::vector<Token> tokens = SpellTokens(prompt.letters, page_tokens_);
  if (start.ns.bigram && !tokens.empty()) tokens.push_back(0);
  tokens.insert(tokens.end(), prompt.tail, 7);
  const bool is_continued = start.ns.bigram && !start.prefix.empty() &&
                            forgery != Forgery::kNotContinuous;
  if (is_continued && !tokens.empty()) {
    tokens.front() = static_cast<Token>(start.prefix.back());
  }
  return tokens;
}

HandlePairs::Pair Executor::Choose(const HandleChoice& choice) const {
  if (!choice.is_used) return {};
  HandlePairs::Pair pair = handles_.Recent(choice.index);
  for (PrefixHandle* handle : {&pair.real, &pair.model}) {
    switch (choice.forgery) {
      case Forgery::kOnePageLess:
        handle->tokens -= std::min(handle->tokens, page_tokens_);
        break;
      case Forgery::kOnePageMore:
        handle->tokens += page_tokens_;
        break;
      case Forgery::kNotAligned:
        handle->tokens += 1;
        break;
      case Forgery::kUnknownNode:
        handle->node += 1'000'000'000;
        break;
      case Forgery::kNone:
      case Forgery::kOtherNamespace:
      case Forgery::kNotContinuous:
        break;
    }
  }
  return pair;
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
      last = PageId(capacity_pages_);
      break;
    case Fault::kListedTwice:
      last = pages.front();
      break;
    case Fault::kSomeoneElses:
      last = PageId(last.value() % (capacity_pages_ - 1) + 1);
      break;
    case Fault::kMissing:
      pages.pop_back();
      break;
  }
}

bool Executor::CompareStatus(const absl::Status& real,
                             const absl::Status& model) {
  differences_.Compare("status", Describe(real), Describe(model));
  ++(real.ok() ? succeeded_ : failed_);
  return real.ok() && model.ok();
}

void Executor::CompareHandles(const PrefixHandle& real,
                              const PrefixHandle& model) {
  const std::string difference = handles_.Add(real, model);
  if (!difference.empty()) differences_.Add(difference);
}

void Executor::CompareRoom(const PageRoom& real) {
  const PageCounts pages = model_.Stats().pages;
  differences_.Compare("free", real.free, pages.free);
  differences_.Compare("evictable", real.evictable, pages.evictable);
}

void Executor::CompareFlush(const FlushResult& real, const FlushResult& model) {
  differences_.Compare("evicted_pages", real.evicted_pages,
                       model.evicted_pages);
  differences_.Compare("protected_pages", real.protected_pages,
                       model.protected_pages);
}

// Stops and restarts the events again and again. The tree is described node by
// node, and changes meanwhile.
void Executor::CompareEvents(EventMirror& mirror) {
  constexpr uint64_t kChecksOfARound = 32;
  if (operations_ / check_every_ % kChecksOfARound == 0) {
    real_.StopEvents();
    real_.StartEvents();
  }
  std::vector<RawEvent> events;
  const bool is_all = real_.TakeEvents(events, 1);
  for (const std::string& impossible : mirror.Apply(events)) {
    differences_.Add(impossible);
  }
  if (!is_all) return;
  if (mirror.pages() != Cached()) {
    differences_.Add("events: they tell of other pages than are cached");
  }
}

EventMirror::Pages Executor::Cached() const {
  EventMirror::Pages cached;
  for (const auto& [ns, pages] : model_.index().namespaces()) {
    for (const auto& [units, page] : pages) {
      cached.emplace(page.id, Place{ns, units});
    }
  }
  return cached;
}

void Executor::CompareWaitsOver() {
  differences_.Compare("waits over", std::exchange(waits_over_, {}),
                       model_.TakeOver());
}

void Executor::CompareStats() {
  const CacheStats real = real_.Stats();
  const CacheStats model = model_.Stats();
  const auto real_fields = StatsFields(real);
  const auto model_fields = StatsFields(model);
  for (size_t i = 0; i < real_fields.size(); ++i) {
    differences_.Compare("stats", real_fields[i], model_fields[i]);
  }
  const ReuseStats real_reuse = real.reuse.value_or(ReuseStats());
  const ReuseStats model_reuse = model.reuse.value_or(ReuseStats());
  differences_.Compare("requested", real_reuse.requested_pages,
                       model_reuse.requested_pages);
  differences_.Compare("hits", real_reuse.hit_pages, model_reuse.hit_pages);
  differences_.Compare("lru hits", real_reuse.lru_hit_pages,
                       model_reuse.lru_hit_pages);
  differences_.Compare("gain", real_reuse.gained_pages,
                       model_reuse.gained_pages);
  differences_.Compare("debt", real_reuse.debt_pages, model_reuse.debt_pages);
  differences_.Compare("ghost hits", real_reuse.ghost_hit_pages,
                       model_reuse.ghost_hit_pages);
  differences_.Compare("ghosts", real_reuse.ghosts, model_reuse.ghosts);
  for (uint32_t level = 0; level < kUsesLevels; ++level) {
    differences_.Compare("chance by uses", real_reuse.chance_by_uses[level],
                         model_reuse.chance_by_uses[level]);
  }
  differences_.Compare("quota classes", real.quota_classes.size(),
                       model.quota_classes.size());
  if (real.quota_classes.size() != model.quota_classes.size()) return;
  for (size_t i = 0; i < real.quota_classes.size(); ++i) {
    const QuotaClassStats& a = real.quota_classes[i];
    const QuotaClassStats& b = model.quota_classes[i];
    differences_.Compare("class name", a.name, b.name);
    differences_.Compare("class floor", a.floor_pages, b.floor_pages);
    differences_.Compare("class cap", a.cap_pages.value_or(UINT32_MAX),
                         b.cap_pages.value_or(UINT32_MAX));
    differences_.Compare("class reserved", a.reserved_pages, b.reserved_pages);
    differences_.Compare("class cached", a.cached_pages, b.cached_pages);
    differences_.Compare("class spared", a.spared_leaves, b.spared_leaves);
  }
}

}  // namespace pando::program
