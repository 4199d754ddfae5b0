#include "tiers/tier_loads.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "tiers/namespace_digest.h"
#include "tiers/prompt_hashes.h"

namespace pando {
namespace {

// So many pages are loaded side by side, and then published together.
constexpr size_t kChunkPages = 32;
// At most so many tokens wait to be looked up, or one longer prompt. A lookup
// is therefore over in milliseconds, unless it waits for a shared store.
constexpr size_t kMaxLookupTokens = size_t{256} * 1024;
// At most so many loads wait to begin.
constexpr size_t kMaxLoads = 64;

}  // namespace

TierLoads::TierLoads(Mover* mover, TierStack* tiers, TurnActions* actions,
                     uint32_t min_load_tokens)
    : mover_(mover),
      tiers_(tiers),
      page_tokens_(mover->cache().page_tokens()),
      min_load_tokens_(min_load_tokens),
      max_locked_pages_(mover->cache().capacity_pages() / Mover::kPoolParts),
      calls_(actions),
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

// A query with a handle is never looked up: the tokens before the handle are
// not known here, so the hashes of the pages after it cannot be computed.
bool TierLoads::IsWorthALookup(const PrefixQuery& query, LoadAction action) {
  if (query.after != PrefixHandle()) return false;
  const absl::StatusOr<PrefixScore> score = mover_->cache().Score(query);
  if (!score.ok()) return false;
  const size_t least =
      action == LoadAction::kAwait ? min_load_tokens_ : page_tokens_;
  // While the next page is pending, kAwait needs no load: the call waits for
  // that page.
  const bool may_load = action != LoadAction::kAwait || !score->is_pending;
  return may_load && WantedPages(query, page_tokens_) * page_tokens_ >=
                         score->matched_tokens + least;
}

bool TierLoads::HasRoomToLookUp(size_t tokens) {
  return lookups_.empty() || lookup_tokens_ + tokens <= kMaxLookupTokens;
}

TierLoads::Lookup TierLoads::LookupOf(uint64_t id, const PrefixQuery& query,
                                      LoadAction action) {
  return {.id = id,
          .ns = query.ns,
          .tokens = {query.tokens.begin(), query.tokens.end()},
          .pages = WantedPages(query, page_tokens_),
          .action = action,
          .generation = mover_->generation()};
}

absl::StatusOr<bool> TierLoads::Begin(Resumable& call, SessionId session,
                                      const PrefixQuery& query,
                                      LoadAction action, absl::Time deadline) {
  if (!IsWorthALookup(query, action)) return false;
  ASSIGN_OR_RETURN(KeptBytes kept,
                   mover_->cache().Keep(session, query.tokens.size_bytes()));
  absl::MutexLock hold(&mutex_);
  if (!HasRoomToLookUp(query.tokens.size())) return false;
  lookup_tokens_ += query.tokens.size();
  lookups_.push_back(LookupOf(calls_.Begin(call, 1, deadline), query, action));
  lookups_.back().kept = std::move(kept);
  return true;
}

bool TierLoads::BeginTelling(Resumable& call,
                             std::span<const PrefixQuery> queries,
                             absl::Time deadline) {
  std::vector<bool> are_worth_it;
  for (const PrefixQuery& query : queries) {
    are_worth_it.push_back(IsWorthALookup(query, LoadAction::kTell));
  }
  if (!std::ranges::count(are_worth_it, true)) return false;
  uint64_t id = calls_.Begin(call, queries.size(), deadline);
  absl::MutexLock hold(&mutex_);
  for (size_t i = 0; i < queries.size(); ++i, ++id) {
    const size_t tokens = queries[i].tokens.size();
    if (!are_worth_it[i] || !HasRoomToLookUp(tokens)) {
      calls_.Answer(id, {});
      continue;
    }
    lookup_tokens_ += tokens;
    lookups_.push_back(LookupOf(id, queries[i], LoadAction::kTell));
  }
  return true;
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

void TierLoads::SetModel(const std::string& model_digest) {
  mover_->EndAll();
  absl::MutexLock hold(&mutex_);
  model_digest_ = model_digest;
}

void TierLoads::SetModelNow(const std::string& model_digest) {
  NamespaceKey named;
  named.extra_key = model_digest;
  tiers_->SetModel(NamespaceDigest(hasher_, named));
  absl::MutexLock hold(&mutex_);
  has_forgotten_ = true;
}

bool TierLoads::IsWanted(const Load& load) {
  if (load.action == LoadAction::kStart) return true;
  // A call ends its lookup and begins to wait within one turn; so both
  // questions must be asked in one turn.
  FairMutexLock turn(&mover_->turn().mutex());
  return calls_.Has(load.lookup) || mover_->IsAwaited(load.reservation.lock);
}

void TierLoads::RunLookups() {
  pthread_setname_np(pthread_self(), "tier-lookup");
  while (true) {
    std::optional<Lookup> lookup;
    std::vector<std::optional<NamespaceKey>> flushed;
    std::string model_digest;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &TierLoads::HasLookup));
      flushed.swap(flushed_);
      model_digest.swap(model_digest_);
      if (flushed.empty() && model_digest.empty()) {
        if (is_stopped_) return;
        lookup = std::move(lookups_.front());
        lookups_.pop_front();
        lookup_tokens_ -= lookup->tokens.size();
      }
    }
    for (const std::optional<NamespaceKey>& ns : flushed) ForgetNow(ns);
    if (!model_digest.empty()) SetModelNow(model_digest);
    if (!lookup.has_value()) continue;
    calls_.Answer(lookup->id, LookUp(*lookup));
  }
}

Kept TierLoads::LookUp(Lookup& lookup) {
  std::vector<PageHash> hashes =
      HashPages(hasher_, lookup.ns, lookup.tokens, lookup.pages, page_tokens_);
  // Other calls may have cached more of the prompt meanwhile, or begun to. The
  // reservation and the load find out what changes after this.
  const absl::StatusOr<PrefixScore> score =
      mover_->cache().Score({.ns = lookup.ns, .tokens = lookup.tokens});
  if (!score.ok()) return {};
  const size_t cached =
      std::min<size_t>(score->matched_tokens / page_tokens_, lookup.pages);
  const std::span<const PageHash> rest = std::span(hashes).subspan(cached);
  TierStack::KeptRun kept = tiers_->CountKept(rest);
  if (lookup.action == LoadAction::kStart && score->is_pending) {
    // A worker may be computing the next page, and publish it only at the end
    // of a long answer. So kStart reports nothing as kept unless a load of this
    // prompt has begun.
    const size_t loading = CountLoading(hashes, cached);
    if (loading == 0) return {};
    if (loading > kept.pages) {
      kept = {.pages = loading, .slowest = KeptIn::kShared};
    }
  }
  const bool is_wanted =
      lookup.action == LoadAction::kStart ||
      (lookup.action == LoadAction::kAwait && calls_.Has(lookup.id));
  if (is_wanted && !score->is_pending && mover_->CanCopy()) {
    const size_t begun = BeginLoad(lookup, std::move(hashes), cached);
    if (begun > kept.pages) kept = {.pages = begun, .slowest = KeptIn::kShared};
  }
  return KeptAfter(cached, kept);
}

size_t TierLoads::CountLoading(std::span<const PageHash> prompt,
                               size_t cached) {
  size_t most = 0;
  const auto count = [&](const Load& load) {
    const auto [end, _] = std::ranges::mismatch(prompt, load.hashes);
    most = std::max<size_t>(most, end - prompt.begin());
  };
  absl::MutexLock hold(&mutex_);
  std::ranges::for_each(loads_, count);
  if (under_way_ != nullptr) count(*under_way_);
  return most - std::min(most, cached);
}

Kept TierLoads::KeptAfter(size_t cached, const TierStack::KeptRun& kept) const {
  if (kept.pages == 0) return {};
  return {.tokens = static_cast<uint32_t>((cached + kept.pages) * page_tokens_),
          .slowest = kept.slowest};
}

size_t TierLoads::BeginLoad(Lookup& lookup, std::vector<PageHash> hashes,
                            size_t cached) {
  const size_t wanted = std::min(hashes.size() - cached, SparePages(cached));
  const uint64_t ns_digest = NamespaceDigest(hasher_, lookup.ns);
  const size_t loadable = tiers_->CountLoadable(
      ns_digest, std::span(hashes).subspan(cached, wanted));
  if (!IsWorthALoad(loadable)) return 0;
  std::optional<Mover::Reservation> reservation = mover_->Reserve(
      lookup.ns, lookup.tokens, cached + loadable, lookup.generation);
  if (!reservation.has_value()) return 0;
  hashes.resize(cached + loadable);
  absl::MutexLock hold(&mutex_);
  loads_.push_back({.lookup = lookup.id,
                    .action = lookup.action,
                    .ns = lookup.ns,
                    .ns_digest = ns_digest,
                    .hashes = std::move(hashes),
                    .reservation = *std::move(reservation),
                    .kept = std::move(lookup.kept)});
  locked_pages_ += loads_.back().locked_pages();
  return loadable;
}

size_t TierLoads::SparePages(size_t cached) {
  absl::MutexLock hold(&mutex_);
  if (loads_.size() >= kMaxLoads) return 0;
  return max_locked_pages_ -
         std::min(max_locked_pages_, locked_pages_ + cached);
}

Kept TierLoads::FindKept(const PrefixQuery& query) {
  PageHasher hasher;
  const size_t pages = WantedPages(query, page_tokens_);
  const std::vector<PageHash> hashes =
      HashPages(hasher, query.ns, query.tokens, pages, page_tokens_);
  const absl::StatusOr<PrefixScore> score = mover_->cache().Score(query);
  if (!score.ok()) return {};
  const size_t cached =
      std::min<size_t>(score->matched_tokens / page_tokens_, pages);
  return KeptAfter(cached,
                   tiers_->CountKept(std::span(hashes).subspan(cached)));
}

LoadObstacle TierLoads::FindObstacle(uint32_t matched_tokens,
                                     uint32_t kept_tokens) {
  const size_t cached = matched_tokens / page_tokens_;
  const size_t stored = kept_tokens / page_tokens_ - cached;
  if (!mover_->CanCopy()) return LoadObstacle::kNoMover;
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
        under_way_ = &*load;
      }
    }
    if (!load.has_value()) {
      tiers_->EraseForgotten();
      continue;
    }
    LoadAndPublish(*load);
    absl::MutexLock hold(&mutex_);
    under_way_ = nullptr;
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
