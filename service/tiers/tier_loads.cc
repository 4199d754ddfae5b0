#include "service/tiers/tier_loads.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "service/process/monotonic_clock.h"
#include "service/tiers/namespace_digest.h"
#include "service/tiers/prompt_hashes.h"

namespace pando {
namespace {

// Published at once; the readers work on so many side by side.
constexpr size_t kChunkPages = 32;
// More tokens than this do not wait to be looked up, so that a lookup is over
// in milliseconds, if it need not wait for a shared store.
constexpr size_t kMaxLookupTokens = size_t{256} * 1024;
// More loads than this do not wait to begin.
constexpr size_t kMaxLoads = 64;
// A call whose time is up waits at most this much longer.
constexpr absl::Duration kLatePeriod = absl::Milliseconds(2);

}  // namespace

TierLoads::TierLoads(Mover* mover, TierStack* tiers, RpcServer* server,
                     uint32_t min_load_tokens)
    : mover_(mover),
      tiers_(tiers),
      page_tokens_(mover->cache().page_tokens()),
      min_load_tokens_(min_load_tokens),
      max_locked_pages_(mover->cache().capacity_pages() / Mover::kPoolParts),
      looked_up_wakeup_(server->AddWakeup([this] { ResumeLookedUp(); })),
      deadline_timer_(server->AddTimer(
          absl::ZeroDuration(),
          [this] { ResumeWithDeadlineUntil(MonotonicNow()); })),
      lookup_thread_([this] { RunLookups(); }),
      load_thread_([this] { RunLoads(); }) {}

TierLoads::~TierLoads() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  lookup_thread_.join();
  load_thread_.join();
  tiers_->EraseForgotten();  // a flush may have come last
}

// The tokens before a handle are not known here, so that what follows it has no
// hash.
bool TierLoads::Begin(WaitingCall& call, const PrefixQuery& query,
                      LoadAction action, absl::Time deadline) {
  if (query.after != PrefixHandle()) return false;
  const size_t pages = WantedPages(query, page_tokens_);
  const absl::StatusOr<PrefixScore> score = mover_->cache().Score(query);
  if (!score.ok()) return false;
  // A call that just waits does so for whoever computes the next page.
  const bool may_load = action != LoadAction::kAwait || !score->is_pending;
  const size_t least =
      action == LoadAction::kAwait ? min_load_tokens_ : page_tokens_;
  if (!may_load || pages * page_tokens_ < score->matched_tokens + least) {
    return false;
  }
  {
    absl::MutexLock hold(&mutex_);
    const size_t tokens = lookup_tokens_ + query.tokens.size();
    if (tokens > kMaxLookupTokens && !lookups_.empty()) return false;
    lookup_tokens_ = tokens;
    lookups_.push_back({.id = ++last_lookup_,
                        .ns = query.ns,
                        .tokens = {query.tokens.begin(), query.tokens.end()},
                        .pages = pages,
                        .action = action,
                        .generation = mover_->generation()});
    by_lookup_[last_lookup_] = &call;
  }
  if (by_call_.empty()) deadline_timer_->SetPeriod(kLatePeriod);
  by_call_[&call] = {.call = &call,
                     .lookup = last_lookup_,
                     .looked_up = {.deadline = deadline}};
  return true;
}

std::optional<LookedUp> TierLoads::End(const WaitingCall& call) {
  const auto it = by_call_.find(&call);
  if (it == by_call_.end()) return std::nullopt;
  const Waiting waiting = it->second;
  by_call_.erase(it);
  if (by_call_.empty()) deadline_timer_->SetPeriod(absl::ZeroDuration());
  absl::MutexLock hold(&mutex_);
  by_lookup_.erase(waiting.lookup);
  return waiting.looked_up;
}

void TierLoads::ForgetSoon(std::optional<NamespaceKey> ns) {
  mover_->EndAll();
  absl::MutexLock hold(&mutex_);
  flushed_.push_back(std::move(ns));
}

void TierLoads::ForgetNow(const std::optional<NamespaceKey>& ns) {
  if (ns.has_value()) {
    tiers_->Forget(NamespaceDigest(hasher_, *ns));
  } else {
    tiers_->Forget(std::nullopt);
  }
  absl::MutexLock hold(&mutex_);
  has_forgotten_ = true;
}

bool TierLoads::HasCall(uint64_t lookup) {
  absl::MutexLock hold(&mutex_);
  return by_lookup_.contains(lookup);
}

bool TierLoads::IsWanted(const Load& load) {
  if (load.action == LoadAction::kStart) return true;
  // Only within a turn may a call have ended its lookup and not yet wait.
  absl::MutexLock turn(&mover_->turn());
  return HasCall(load.lookup) || mover_->IsAwaited(load.reservation.lock);
}

void TierLoads::ResumeAll() { ResumeWithDeadlineUntil(absl::InfiniteFuture()); }

// A handler that runs again ends its wait.
void TierLoads::ResumeWithDeadlineUntil(absl::Time deadline) {
  std::vector<WaitingCall*> calls;
  for (const auto& [_, waiting] : by_call_) {
    if (waiting.looked_up.deadline <= deadline) calls.push_back(waiting.call);
  }
  for (WaitingCall* call : calls) call->Resume();
}

void TierLoads::ResumeLookedUp() {
  std::vector<Result> looked_up;
  {
    absl::MutexLock hold(&mutex_);
    looked_up.swap(looked_up_);
  }
  for (const auto& [lookup, kept_tokens] : looked_up) {
    WaitingCall* call = nullptr;
    {
      absl::MutexLock hold(&mutex_);
      const auto it = by_lookup_.find(lookup);
      if (it != by_lookup_.end()) call = it->second;
    }
    if (call == nullptr) continue;
    by_call_.at(call).looked_up.kept_tokens = kept_tokens;
    call->Resume();
  }
}

void TierLoads::RunLookups() {
  pthread_setname_np(pthread_self(), "tier-lookup");
  while (true) {
    std::optional<Lookup> lookup;
    std::vector<std::optional<NamespaceKey>> flushed;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &TierLoads::HasLookup));
      flushed.swap(flushed_);
      if (flushed.empty()) {
        if (is_stopped_) return;
        lookup = std::move(lookups_.front());
        lookups_.pop_front();
        lookup_tokens_ -= lookup->tokens.size();
      }
    }
    for (const std::optional<NamespaceKey>& ns : flushed) ForgetNow(ns);
    if (!lookup.has_value()) continue;
    const uint32_t kept_tokens = LookUp(*lookup);
    {
      absl::MutexLock hold(&mutex_);
      looked_up_.push_back({lookup->id, kept_tokens});
    }
    looked_up_wakeup_->Request();
  }
}

uint32_t TierLoads::LookUp(const Lookup& lookup) {
  std::vector<PageHash> hashes =
      HashPages(hasher_, lookup.ns, lookup.tokens, lookup.pages, page_tokens_);
  // Others may have cached more of it meanwhile, or begun to. What changes
  // after this, the reservation and the load find out.
  const absl::StatusOr<PrefixScore> score =
      mover_->cache().Score({.ns = lookup.ns, .tokens = lookup.tokens});
  if (!score.ok()) return 0;
  const size_t cached =
      std::min<size_t>(score->matched_tokens / page_tokens_, lookup.pages);
  const std::span<const PageHash> rest = std::span(hashes).subspan(cached);
  const size_t on_disk = tiers_->CountOnDisk(rest);
  const bool is_wanted =
      lookup.action == LoadAction::kStart ||
      (lookup.action == LoadAction::kAwait && HasCall(lookup.id));
  if (is_wanted && !score->is_pending) {
    BeginLoad(lookup, std::move(hashes), cached);
  }
  return on_disk == 0
             ? 0
             : static_cast<uint32_t>((cached + on_disk) * page_tokens_);
}

void TierLoads::BeginLoad(const Lookup& lookup, std::vector<PageHash> hashes,
                          size_t cached) {
  const size_t wanted = std::min(hashes.size() - cached, SparePages(cached));
  const uint64_t ns_digest = NamespaceDigest(hasher_, lookup.ns);
  const size_t loadable = tiers_->CountLoadable(
      ns_digest, std::span(hashes).subspan(cached, wanted));
  if (!IsWorthALoad(loadable)) return;
  std::optional<Mover::Reservation> reservation = mover_->Reserve(
      lookup.ns, lookup.tokens, cached + loadable, lookup.generation);
  if (!reservation.has_value()) return;
  hashes.resize(cached + loadable);
  absl::MutexLock hold(&mutex_);
  loads_.push_back({.lookup = lookup.id,
                    .action = lookup.action,
                    .ns = lookup.ns,
                    .ns_digest = ns_digest,
                    .hashes = std::move(hashes),
                    .reservation = *std::move(reservation)});
  locked_pages_ += loads_.back().locked_pages();
}

size_t TierLoads::SparePages(size_t cached) {
  absl::MutexLock hold(&mutex_);
  if (loads_.size() >= kMaxLoads) return 0;
  return max_locked_pages_ -
         std::min(max_locked_pages_, locked_pages_ + cached);
}

uint32_t TierLoads::CountKept(const PrefixQuery& query) {
  PageHasher hasher;
  const size_t pages = WantedPages(query, page_tokens_);
  const std::vector<PageHash> hashes =
      HashPages(hasher, query.ns, query.tokens, pages, page_tokens_);
  const absl::StatusOr<PrefixScore> score = mover_->cache().Score(query);
  if (!score.ok()) return 0;
  const size_t cached =
      std::min<size_t>(score->matched_tokens / page_tokens_, pages);
  const size_t on_disk = tiers_->CountOnDisk(std::span(hashes).subspan(cached));
  return on_disk == 0
             ? 0
             : static_cast<uint32_t>((cached + on_disk) * page_tokens_);
}

LoadObstacle TierLoads::FindObstacle(uint32_t matched_tokens,
                                     uint32_t kept_tokens) {
  const size_t cached = matched_tokens / page_tokens_;
  const size_t stored = kept_tokens / page_tokens_ - cached;
  if (!IsWorthALoad(stored)) return LoadObstacle::kTooFew;
  return IsWorthALoad(std::min(stored, SparePages(cached)))
             ? LoadObstacle::kNone
             : LoadObstacle::kNoRoom;
}

void TierLoads::RunLoads() {
  pthread_setname_np(pthread_self(), "tier-load");
  while (true) {
    std::optional<Load> load;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &TierLoads::HasLoad));
      if (!std::exchange(has_forgotten_, false)) {
        if (is_stopped_) return;
        load = std::move(loads_.front());
        loads_.pop_front();
      }
    }
    if (!load.has_value()) {
      tiers_->EraseForgotten();
      continue;
    }
    LoadAndPublish(*load);
    absl::MutexLock hold(&mutex_);
    locked_pages_ -= load->locked_pages();
  }
}

void TierLoads::LoadAndPublish(const Load& load) {
  if (!IsWanted(load)) {
    mover_->Publish(load.ns, load.reservation.lock, load.reservation.pages, 0,
                    true);
    return;
  }
  std::span<const PageHash> hashes(load.hashes);
  tiers_->Touch(hashes);
  hashes = hashes.subspan(load.reservation.matched_pages);
  std::span<const PageId> pages(load.reservation.pages);
  for (bool is_last = false; !is_last;) {
    const size_t count = std::min(kChunkPages, pages.size());
    const size_t loaded =
        mover_->Holds(load.reservation.lock)
            ? tiers_->Load(load.ns_digest, hashes.first(count),
                           pages.first(count))
            : 0;
    is_last = loaded < count || count == pages.size() || is_stopped();
    if (!mover_->Publish(load.ns, load.reservation.lock, pages, loaded,
                         is_last)) {
      return;
    }
    hashes = hashes.subspan(loaded);
    pages = pages.subspan(loaded);
  }
}

}  // namespace pando
