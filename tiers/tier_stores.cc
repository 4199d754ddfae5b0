#include "tiers/tier_stores.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/requests/namespace.h"
#include "tiers/namespace_digest.h"

namespace pando {
namespace {

// All waiting prompts together take at most so many bytes.
constexpr size_t kMaxQueuedBytes = size_t{64} << 20;

size_t MaxPages(const PrefixCache& cache, const StoreTarget& tier) {
  return std::min<size_t>(cache.capacity_pages() / Mover::kPoolParts,
                          tier.capacity_pages());
}

size_t LengthOf(const std::optional<std::string>& name) {
  return name.has_value() ? name->size() : 0;
}

}  // namespace

size_t TierStores::Prompt::bytes() const {
  return sizeof(Prompt) + LengthOf(ns.extra_key) + LengthOf(ns.cache_salt) +
         tokens.size() * sizeof(Token) + hashes.size() * sizeof(PageHash);
}

TierStores::TierStores(Mover* mover, StoreTarget* tier, bool stores_at_once)
    : mover_(mover),
      tier_(tier),
      stores_at_once_(stores_at_once),
      max_pages_(MaxPages(mover->cache(), *tier)),
      thread_([this] { Run(); }) {}

TierStores::~TierStores() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  thread_.join();
}

TierStores::Prompt TierStores::PromptOf(const CachedPages& pages, PageId last) {
  const NamespaceKey& ns = pages.ns(last);
  const size_t count = pages.ordinal(last);
  const uint32_t page_tokens = pages.page_tokens();
  Prompt prompt = {.ns = ns,
                   .tokens = std::vector<Token>(
                       SpelledTokens(LookaheadOf(ns), count, page_tokens)),
                   .hashes = std::vector<PageHash>(count)};
  PageId page = last;
  for (size_t i = count; i-- > 0; page = pages.parent(page)) {
    prompt.hashes[i] = pages.hash(page);
    std::ranges::copy(
        pages.tokens(page),
        prompt.tokens.begin() + static_cast<std::ptrdiff_t>(i * page_tokens));
  }
  return prompt;
}

void TierStores::Stored(const CachedPages& pages, std::span<const PageId> run) {
  if (!stores_at_once_) return;
  Prompt prompt = PromptOf(pages, run.back());
  if (tier_->TouchIfStored(prompt.hashes)) {  // it was loaded
    tier_->Tell(prompt.AsHashed(pages.page_tokens()));
    return;
  }
  Queue(std::move(prompt), run.size());
}

void TierStores::Hit(const CachedPages& pages, PageId last) {
  Prompt prompt = PromptOf(pages, last);
  if (tier_->TouchIfStored(prompt.hashes)) {
    tier_->Tell(prompt.AsHashed(pages.page_tokens()));
    return;
  }
  const size_t new_pages =
      prompt.hashes.size() - tier_->CountStored(prompt.hashes);
  Queue(std::move(prompt), new_pages);
}

void TierStores::Queue(Prompt prompt, size_t new_pages) {
  absl::MutexLock hold(&mutex_);
  if (queued_bytes_ + prompt.bytes() > kMaxQueuedBytes) {
    tier_->CountDropped(new_pages);
    return;
  }
  queued_bytes_ += prompt.bytes();
  queue_.push_back(std::move(prompt));
}

void TierStores::Run() {
  pthread_setname_np(pthread_self(), "tier-store");
  while (true) {
    Prompt prompt;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &TierStores::HasWork));
      if (is_stopped_) return;
      prompt = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= prompt.bytes();
    }
    Store(prompt);
  }
}

void TierStores::Store(const Prompt& prompt) {
  const size_t count = std::min(prompt.hashes.size(), max_pages_);
  const std::span<const PageHash> hashes(prompt.hashes.data(), count);
  tier_->BeginPrompt(NamespaceDigest(hasher_, prompt.ns), hashes);
  size_t begin = 0;
  while (!is_stopped()) {
    begin += tier_->CountStored(hashes.subspan(begin));
    if (begin == count) break;
    const size_t end = std::min(begin + tier_->max_pages_per_store(), count);
    if (!StoreChunk(prompt, begin, end)) break;
    begin = end;
  }
  tier_->EndPrompt();
  tier_->Tell(prompt.AsHashed(mover_->cache().page_tokens()));
  tier_->CountDropped(prompt.hashes.size() - begin);
}

bool TierStores::StoreChunk(const Prompt& prompt, size_t begin, size_t end) {
  const std::optional<Mover::LockedPrefix> prefix =
      mover_->Lock(prompt.ns, prompt.tokens, end);
  if (!prefix.has_value()) return false;
  if (prefix->pages.size() < end) {
    mover_->Unlock(prefix->lock);
    return false;
  }
  tier_->Store(NamespaceDigest(hasher_, prompt.ns), prompt.hashes, begin,
               std::span(prefix->pages).subspan(begin, end - begin),
               [&] { return mover_->Unlock(prefix->lock); });
  return true;
}

}  // namespace pando
