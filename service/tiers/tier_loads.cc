#include "service/tiers/tier_loads.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "core/namespace.h"
#include "service/process/monotonic_clock.h"
#include "service/tiers/namespace_digest.h"

namespace pando {
namespace {

// Published at once; the readers work on so many side by side.
constexpr size_t kChunkPages = 32;
// More tokens than this do not wait to be looked up, so that a lookup is over
// in milliseconds.
constexpr size_t kMaxLookupTokens = size_t{256} * 1024;
// More loads than this do not wait to begin.
constexpr size_t kMaxLoads = 64;
// A call whose time is up waits at most this much longer.
constexpr absl::Duration kLatePeriod = absl::Milliseconds(2);

// How many whole pages of the prompt the caller wants.
size_t WantedPages(const PrefixQuery& query, uint32_t page_tokens) {
  const size_t pages =
      WholePages(LookaheadOf(query.ns), query.tokens.size(), page_tokens);
  if (!query.max_tokens.has_value()) return pages;
  return std::min<size_t>(pages, *query.max_tokens / page_tokens);
}

std::vector<PageHash> HashPages(PageHasher& hasher, const NamespaceKey& ns,
                                std::span<const Token> tokens, size_t pages,
                                uint32_t page_tokens) {
  std::vector<PageHash> hashes;
  hashes.reserve(pages);
  PageHash hash = hasher.Seed(ns);
  for (size_t i = 0; i < pages; ++i) {
    const std::span<const Token> page =
        tokens.subspan(i * page_tokens, page_tokens + LookaheadOf(ns));
    hash = hasher.Next(hash, page, ns.bigram);
    hashes.push_back(hash);
  }
  return hashes;
}

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
                      absl::Time deadline) {
  if (query.after != PrefixHandle()) return false;
  const size_t pages = WantedPages(query, page_tokens_);
  const absl::StatusOr<PrefixScore> score = mover_->cache().Score(query);
  if (!score.ok() || score->is_pending ||
      pages * page_tokens_ < score->matched_tokens + size_t{min_load_tokens_}) {
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
                        .generation = mover_->generation()});
    by_lookup_[last_lookup_] = &call;
  }
  if (by_call_.empty()) deadline_timer_->SetPeriod(kLatePeriod);
  by_call_[&call] = {
      .call = &call, .lookup = last_lookup_, .deadline = deadline};
  return true;
}

std::optional<absl::Time> TierLoads::End(const WaitingCall& call) {
  const auto it = by_call_.find(&call);
  if (it == by_call_.end()) return std::nullopt;
  const Waiting waiting = it->second;
  by_call_.erase(it);
  if (by_call_.empty()) deadline_timer_->SetPeriod(absl::ZeroDuration());
  absl::MutexLock hold(&mutex_);
  by_lookup_.erase(waiting.lookup);
  return waiting.deadline;
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

bool TierLoads::IsWanted(const Lookup& lookup) {
  absl::MutexLock hold(&mutex_);
  return by_lookup_.contains(lookup.id);
}

void TierLoads::ResumeAll() { ResumeWithDeadlineUntil(absl::InfiniteFuture()); }

// A handler that runs again ends its wait.
void TierLoads::ResumeWithDeadlineUntil(absl::Time deadline) {
  std::vector<WaitingCall*> calls;
  for (const auto& [_, waiting] : by_call_) {
    if (waiting.deadline <= deadline) calls.push_back(waiting.call);
  }
  for (WaitingCall* call : calls) call->Resume();
}

void TierLoads::ResumeLookedUp() {
  std::vector<uint64_t> looked_up;
  {
    absl::MutexLock hold(&mutex_);
    looked_up.swap(looked_up_);
  }
  for (const uint64_t lookup : looked_up) {
    WaitingCall* call = nullptr;
    {
      absl::MutexLock hold(&mutex_);
      const auto it = by_lookup_.find(lookup);
      if (it != by_lookup_.end()) call = it->second;
    }
    if (call != nullptr) call->Resume();
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
    LookUp(*lookup);
    {
      absl::MutexLock hold(&mutex_);
      looked_up_.push_back(lookup->id);
    }
    looked_up_wakeup_->Request();
  }
}

void TierLoads::LookUp(const Lookup& lookup) {
  std::vector<PageHash> hashes =
      HashPages(hasher_, lookup.ns, lookup.tokens, lookup.pages, page_tokens_);
  // Others may have cached more of it meanwhile, or begun to. What changes
  // after this, the reservation and the load find out.
  const absl::StatusOr<PrefixScore> score =
      mover_->cache().Score({.ns = lookup.ns, .tokens = lookup.tokens});
  if (!score.ok() || score->is_pending) return;
  const size_t cached =
      std::min<size_t>(score->matched_tokens / page_tokens_, lookup.pages);
  const size_t spare = SparePages();
  const size_t wanted =
      std::min(hashes.size() - cached, spare - std::min(spare, cached));
  const uint64_t ns_digest = NamespaceDigest(hasher_, lookup.ns);
  const size_t loadable = tiers_->CountLoadable(
      ns_digest, std::span(hashes).subspan(cached, wanted));
  if (loadable == 0 || !IsWanted(lookup) ||
      loadable * page_tokens_ < min_load_tokens_)
    return;
  std::optional<Mover::Reservation> reservation = mover_->Reserve(
      lookup.ns, lookup.tokens, cached + loadable, lookup.generation);
  if (!reservation.has_value()) return;
  hashes.resize(cached + loadable);
  absl::MutexLock hold(&mutex_);
  loads_.push_back({.ns = lookup.ns,
                    .ns_digest = ns_digest,
                    .hashes = std::move(hashes),
                    .reservation = *std::move(reservation)});
  locked_pages_ += loads_.back().locked_pages();
}

size_t TierLoads::SparePages() {
  absl::MutexLock hold(&mutex_);
  if (loads_.size() >= kMaxLoads) return 0;
  return max_locked_pages_ - std::min(max_locked_pages_, locked_pages_);
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
