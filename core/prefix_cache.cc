#include "core/prefix_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/journal/measurements.h"
#include "core/match/freeing.h"
#include "core/match/repeats.h"
#include "core/match/unlocking.h"
#include "core/operators/eviction_work.h"
#include "core/operators/explanation.h"
#include "core/operators/listings.h"
#include "core/operators/policy_change.h"
#include "core/operators/session_ends.h"
#include "core/operators/tree_dump.h"
#include "core/requests/errors.h"
#include "core/tree/prefix_search.h"

namespace pando {
class ABSL_SCOPED_LOCKABLE PrefixCache::Hold {
 public:
  // Also measures `operation`, if there is a clock: from here until the mutex
  // is released. The wait for the mutex is timed only if it is not free.
  explicit Hold(PrefixCache* cache,
                std::optional<Operation> operation = std::nullopt)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(cache->mutex_)
      : cache_(cache) {
    if (!operation.has_value() || cache->options_.clock == nullptr) {
      cache->mutex_.Lock();
      return;
    }
    operation_ = operation;
    begin_ = cache->options_.clock();
    double wait = 0;
    if (!cache->mutex_.TryLock()) {
      cache->mutex_.Lock();
      wait = SecondsSinceBegin();
    }
    cache->parts_.journal.measured().lock_wait_seconds.Record(wait);
  }

  ~Hold() ABSL_UNLOCK_FUNCTION() {
    if (operation_.has_value()) {
      cache_->parts_.journal.measured().operation_seconds[*operation_].Record(
          SecondsSinceBegin());
    }
    cache_->parts_.sessions.EndChanges();
    const std::vector<EndedWait> ended =
        cache_->parts_.pending.TakeEndedWaits();
    cache_->mutex_.Unlock();
    for (const auto& [wait, outcome] : ended) {
      cache_->options_.on_wait_over(wait, outcome);
    }
  }

  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  double SecondsSinceBegin() const {
    return static_cast<double>(cache_->options_.clock() - begin_) * 1e-9;
  }

  PrefixCache* const cache_;
  std::optional<Operation> operation_;  // the one that is measured, if any
  int64_t begin_ = 0;
};

namespace {

std::unique_ptr<PageLedger> LedgerOf(const PrefixCache::Options& options) {
  if (options.ledger.empty()) return nullptr;
  return std::make_unique<PageLedger>(
      PageLedger::Pool{.page_tokens = options.page_tokens,
                       .capacity_pages = options.capacity_pages,
                       .memory_id = options.ledger_pool},
      options.ledger);
}

}  // namespace

PrefixCache::PrefixCache(const Options& options)
    : options_(options),
      quotas_(options.quota_classes),
      ledger_(LedgerOf(options)),
      epoch_(options.epoch),
      parts_(options.page_tokens, options.capacity_pages,
             options.eviction_policy, &quotas_, options.reuse,
             options.first_told_hit, options.blocks, ledger_.get()) {
  parts_.sessions.SetLimits(options.session_limits);
  parts_.budget.SetQuotas(options.quota_classes);
  parts_.budget.SetWatermark(options.low_free_pages, options.high_free_pages);
  if (ledger_ == nullptr) return;
  if (ledger_->is_of_before()) Recover();
  ledger_->counts().epoch = epoch_;
}

PrefixCache::~PrefixCache() {
  if (ledger_ != nullptr) ledger_->arena().LeaveAll();
}

void PrefixCache::NoteModel(const std::string& model) {
  Hold hold(this);
  if (ledger_ != nullptr) ledger_->SetModel(model);
}

std::string PrefixCache::KeptModel() {
  Hold hold(this);
  return ledger_ == nullptr ? "" : ledger_->model();
}

void PrefixCache::BeginDrain() {
  Hold hold(this);
  parts_.is_draining = true;
}

Matching PrefixCache::Start(const MatchRequest& request) const {
  return Matching(request, page_tokens(), capacity_pages(), arena());
}

Inserting PrefixCache::Start(const InsertRequest& request) const {
  return Inserting(request, page_tokens(), arena());
}

SegmentArena* PrefixCache::arena() const {
  return ledger_ == nullptr ? nullptr : &ledger_->arena();
}

Allocation PrefixCache::Start(const AllocateRequest& request) const {
  return Allocation(request, quotas_.ClassOf(request.ns), capacity_pages());
}

absl::StatusOr<MatchResult> PrefixCache::Match(const MatchRequest& request) {
  return Run(Start(request)).Take();
}

absl::StatusOr<InsertResult> PrefixCache::Insert(const InsertRequest& request) {
  return Run(Start(request)).Take();
}

absl::StatusOr<AllocateResult> PrefixCache::Allocate(
    const AllocateRequest& request) {
  return Run(Start(request)).Take();
}

absl::Status PrefixCache::Free(SessionId session, std::span<const PageId> pages,
                               RequestId request_id) {
  return Run(Freeing(session, {pages.begin(), pages.end()}, request_id))
      .status();
}

absl::StatusOr<PrefixScore> PrefixCache::Score(const PrefixQuery& query) {
  Hold hold(this, Operation::kScore);
  ASSIGN_OR_RETURN(const FoundPrefix found,
                   FindPrefix(parts_.tree, query, nullptr));
  return PrefixScore{
      .matched_tokens = found.pages * options_.page_tokens,
      .is_pending = parts_.pending.Find(found, query) != nullptr};
}

bool PrefixCache::IsAwaited(SessionId id, LockId lock) {
  Hold hold(this);
  const Session* const session = parts_.sessions.Find(id);
  if (session == nullptr) return false;
  const LockRecord* const owner = parts_.sessions.FindLock(*session, lock);
  return owner != nullptr && owner->pending != nullptr &&
         !owner->pending->waits.empty();
}

bool PrefixCache::CancelWait(WaitId wait) {
  Hold hold(this);
  return parts_.pending.Cancel(wait);
}

absl::StatusOr<LockResult> PrefixCache::Lock(const LockRequest& request) {
  Hold hold(this, Operation::kLock);
  ASSIGN_OR_RETURN(Session* const session,
                   parts_.sessions.GetForStep(request.session));
  ASSIGN_OR_RETURN(
      const LockResult* const first,
      FindAnswer<LockResult>(parts_, *session, request.request_id));
  if (first != nullptr) return *first;
  RETURN_IF_ERROR(CheckAdmits(parts_));
  const PrefixQuery query{
      .ns = request.ns, .tokens = request.tokens, .after = request.after};
  ASSIGN_OR_RETURN(const FoundPrefix found,
                   FindPrefix(parts_.tree, query, nullptr));
  RETURN_IF_ERROR(parts_.sessions.CheckMoreLocks(*session));
  Node& end = found.ns == nullptr
                  ? *parts_.tree.FindOrMakeNamespace(request.ns).root
                  : parts_.tree.NodeEndingAt(found.position);
  LockResult result;
  result.locked_tokens = found.pages * options_.page_tokens;
  LockRecord& lock = parts_.holdings.TakeLock(*session, end);
  result.lock = SessionTable::IdOf(lock);
  lock.request =
      parts_.tree.BeginRequest(PromptTokens(query), result.locked_tokens);
  parts_.tree.Touch(end, {.request = &lock.request});
  if (!end.is_root()) result.handle = HandleTo(parts_.tree, EndOf(end));
  KeepAnswer(parts_, *session, request.request_id, result);
  return result;
}

absl::Status PrefixCache::Unlock(SessionId session,
                                 std::span<const LockId> locks,
                                 RequestId request_id) {
  return Run(Unlocking(session, {locks.begin(), locks.end()}, request_id))
      .status();
}

bool PrefixCache::Step(SteppedWork& work) {
  work.Prepare();
  Hold hold(this, work.operation());
  return work.Step(parts_);
}

uint32_t PrefixCache::EvictToWatermark() {
  Hold hold(this);
  return parts_.budget.EvictToWatermark(kStepEvictedPages);
}

void PrefixCache::SetWatermark(uint32_t low_free_pages,
                               uint32_t high_free_pages) {
  Hold hold(this);
  parts_.budget.SetWatermark(low_free_pages, high_free_pages);
}

void PrefixCache::SetQuotas(const std::vector<QuotaClass>& classes) {
  Hold hold(this);
  parts_.budget.SetQuotas(classes);
}

void PrefixCache::SetBlockLimits(const std::vector<BlockQuota>& quotas,
                                 absl::Duration write_limit) {
  Hold hold(this);
  parts_.blocks.quotas().SetLimits(quotas);
  parts_.blocks.set_write_limit(write_limit);
}

void PrefixCache::SetSessionLimits(const SessionLimits& limits) {
  Hold hold(this);
  parts_.sessions.SetLimits(limits);
}

SessionNumber PrefixCache::OpenSession(SessionId id, std::string client_name,
                                       bool is_internal) {
  Hold hold(this);
  return parts_.holdings.Open(id, std::move(client_name), is_internal);
}

absl::Status PrefixCache::AttachSession(SessionId id,
                                        std::optional<WriterId> writer) {
  Hold hold(this);
  ASSIGN_OR_RETURN(Session* const session, parts_.sessions.Get(id));
  parts_.sessions.AddWriter(*session, writer);
  return absl::OkStatus();
}

void PrefixCache::SetSessionOwner(SessionId id, const std::string& owner) {
  Hold hold(this);
  const absl::StatusOr<Session*> session = parts_.sessions.Get(id);
  if (session.ok()) parts_.sessions.SetOwner(**session, owner);
}

void PrefixCache::CloseSession(SessionId id) {
  {
    Hold hold(this);
    parts_.holdings.Close(id);
  }
  BeginEnds();
}

void PrefixCache::SuspendSession(SessionId id, absl::Time lost_at) {
  {
    Hold hold(this);
    parts_.holdings.Suspend(id, lost_at);
  }
  BeginEnds();
}

absl::StatusOr<SessionNumber> PrefixCache::ResumeSession(SessionId id) {
  Hold hold(this);
  ASSIGN_OR_RETURN(Session* const session, parts_.sessions.Get(id));
  session->lost_at.reset();
  return session->number;
}

absl::Status PrefixCache::CheckIsAdmitting() {
  Hold hold(this);
  return parts_.CheckAdmits();
}

absl::Status PrefixCache::CheckSession(SessionId id) {
  Hold hold(this);
  return parts_.sessions.Get(id).status();
}

absl::StatusOr<KeptBytes> PrefixCache::Keep(SessionId id, uint64_t bytes) {
  Hold hold(this);
  ASSIGN_OR_RETURN(Session* const session, parts_.sessions.GetAccount(id));
  RETURN_IF_ERROR(parts_.sessions.CheckMoreBytes(*session, bytes));
  parts_.sessions.KeepBytes(*session, bytes);
  return KeptBytes(this, id, bytes);
}

void PrefixCache::Release(SessionId id, uint64_t bytes) {
  Hold hold(this);
  const absl::StatusOr<Session*> session = parts_.sessions.GetAccount(id);
  if (session.ok()) parts_.sessions.ReleaseBytes(**session, bytes);
}

void PrefixCache::WriterGone(WriterId writer) {
  {
    Hold hold(this);
    parts_.holdings.WriterGone(writer);
  }
  BeginEnds();
}

void PrefixCache::BeginEnds() {
  SessionEnds ends;
  if (Step(ends)) return;
  if (options_.on_ends != nullptr) {
    options_.on_ends();
  } else {
    Finish(ends);
  }
}

ExpiredSessions PrefixCache::ExpireSessions(absl::Time now,
                                            absl::Duration quarantine) {
  {
    Hold hold(this);
    parts_.journal.set_time(now);
    parts_.blocks.set_time(now);
    parts_.tree.set_time(static_cast<uint32_t>(absl::ToUnixMillis(now) / 100));
    parts_.holdings.Expire(quarantine);
  }
  BeginEnds();
  Hold hold(this);
  return parts_.holdings.TakeExpired();
}

void PrefixCache::StartEvents() {
  Hold hold(this);
  parts_.journal.StartEvents();
}

void PrefixCache::StopEvents() {
  Hold hold(this);
  parts_.journal.StopEvents();
}

bool PrefixCache::TakeEvents(std::vector<RawEvent>& events, uint32_t nodes) {
  events.clear();  // outside the mutex
  Hold hold(this);
  return parts_.journal.TakeEvents(parts_.tree, nodes, events);
}

void PrefixCache::TakeChurn(std::vector<RawEvent>& events) {
  events.clear();
  Hold hold(this);
  parts_.journal.TakeChurn(events);
}

TreePart PrefixCache::CopyTree(uint32_t block) {
  TreePart part;
  part.nodes.reserve(MaxNodesPerPart());
  Hold hold(this);
  CopyTreePart(parts_.tree, block, part);
  return part;
}

std::vector<NodeCopy> PrefixCache::CopyNodes(
    std::span<const NodeHandle> handles) {
  std::vector<NodeCopy> nodes;
  nodes.reserve(handles.size());
  Hold hold(this);
  pando::CopyNodes(parts_.tree, handles, nodes);
  return nodes;
}

std::vector<Token> PrefixCache::CopyTokens(NodeHandle handle, uint32_t limit) {
  std::vector<Token> tokens;
  tokens.reserve(limit);
  Hold hold(this);
  pando::CopyTokens(parts_.tree, handle, limit, tokens);
  return tokens;
}

CacheStats PrefixCache::Stats() {
  Hold hold(this);
  CacheStats stats = StatsOf(parts_);
  if (ledger_ != nullptr) stats.recoveries = ledger_->recoveries();
  return stats;
}

bool PrefixCache::IsIdle() {
  Hold hold(this);
  if (parts_.sessions.lock_count() > 0 ||
      parts_.pool.count(PageState::kReserved) > 0) {
    return false;
  }
  bool has_blocks = false;
  parts_.sessions.ForEachSession([&](const Session& session) {
    has_blocks = has_blocks || session.blocks->holds_anything();
  });
  return !has_blocks;
}

std::optional<std::vector<std::string>> PrefixCache::CheckInvariantsStep() {
  Hold hold(this);
  if (check_ == nullptr) check_ = std::make_unique<InvariantCheck>(parts_);
  if (!check_->Step()) return std::nullopt;
  std::vector<std::string> violations = check_->TakeViolations();
  check_.reset();
  return violations;
}

uint32_t PrefixCache::Evict(uint32_t pages) {
  return Run(EvictionWork(pages)).evicted_pages();
}

EvictionPolicyKind PrefixCache::SetEvictionPolicy(EvictionPolicyKind policy) {
  return Run(PolicyChange(policy)).previous();
}

FlushResult PrefixCache::Flush() { return Run(FlushWork()).result(); }

FlushResult PrefixCache::FlushNamespace(const NamespaceKey& key) {
  return Run(FlushWork(key)).result();
}

FlushResult PrefixCache::FlushNamespace(NamespaceNumber number) {
  return Run(FlushWork(number)).result();
}

NamespaceList PrefixCache::ListNamespaces(uint32_t limit) {
  return Run(NamespaceListing(limit)).Take();
}

SessionList PrefixCache::ListSessions(uint32_t limit) {
  return Run(SessionListing(limit)).Take();
}

LockList PrefixCache::ListLocks(uint32_t limit,
                                std::optional<SessionNumber> session) {
  return Run(LockListing(limit, session)).Take();
}

absl::StatusOr<uint32_t> PrefixCache::ReleaseLocks(SessionNumber session) {
  return Run(LockRelease(session)).result();
}

QuarantineList PrefixCache::ListQuarantine(uint32_t limit) {
  return Run(QuarantineListing(limit)).Take();
}

absl::StatusOr<uint32_t> PrefixCache::FreeQuarantine(SessionNumber number) {
  return Run(QuarantineRelease(number)).result();
}

MatchExplanation PrefixCache::ExplainMatch(const NamespaceKey& ns,
                                           std::span<const Token> tokens) {
  return Run(Explanation(ns, tokens)).Take();
}

TreeDump PrefixCache::DumpTree(uint32_t limit,
                               std::optional<NamespaceNumber> ns) {
  TreeDumpWork work = Run(TreeDumpWork(limit, ns));
  return {.nodes = work.TakeNodes(), .omitted = work.omitted()};
}

std::vector<std::string> PrefixCache::CheckInvariants() {
  std::optional<std::vector<std::string>> violations;
  while (!violations.has_value()) violations = CheckInvariantsStep();
  return *std::move(violations);
}

}  // namespace pando
