#ifndef PANDO_TIERS_TIER_STORES_H_
#define PANDO_TIERS_TIER_STORES_H_

#include <cstddef>
#include <deque>
#include <span>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "core/requests/namespace_key.h"
#include "events/event_sink.h"
#include "tiers/mover.h"
#include "tiers/store_target.h"

namespace pando {

// Stores pages in one tier when they enter the cache or are hit there, on a
// thread of its own. Neither calls nor evictions wait for it: pages that come
// faster than the tier can write, or that are evicted before their turn, are
// dropped. Owned by Tiers.
class TierStores final : public EventSink {
 public:
  // Both pointers must outlive this object. With `stores_at_once`, pages are
  // also stored when they enter the cache, and not only when they are hit.
  TierStores(Mover* mover, StoreTarget* tier, bool stores_at_once);
  ~TierStores() override;

  void Stored(const CachedPages& pages, std::span<const PageId> run) override;
  void Hit(const CachedPages& pages, PageId last) override;
  void Removed(const CachedPages&, std::span<const PageId>,
               EvictionReason) override {}
  void Cleared() override {}
  bool EndTurn(const CachedPages*) override { return true; }

 private:
  // A prompt some of whose pages are not stored.
  struct Prompt {
    NamespaceKey ns;
    std::vector<Token> tokens;
    std::vector<PageHash> hashes;

    size_t bytes() const;
    HashedPrompt AsHashed(uint32_t page_tokens) const {
      return {ns, tokens, hashes, page_tokens};
    }
  };

  // Returns the prompt that ends with the page `last`.
  static Prompt PromptOf(const CachedPages& pages, PageId last);
  // Queues a prompt of which `new_pages` pages are not stored. They count as
  // dropped when the queue is full.
  void Queue(Prompt prompt, size_t new_pages);
  void Run();
  void Store(const Prompt& prompt);
  // Stores the pages of a prompt from index `begin` up to `end`. Returns false
  // if they are not all cached any more, or cannot be locked.
  bool StoreChunk(const Prompt& prompt, size_t begin, size_t end);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !queue_.empty();
  }
  bool is_stopped() {
    absl::MutexLock hold(&mutex_);
    return is_stopped_;
  }

  Mover* const mover_;
  StoreTarget* const tier_;
  const bool stores_at_once_;
  const size_t max_pages_;  // of one prompt
  absl::Mutex mutex_;
  PageHasher hasher_;  // the thread's alone
  std::deque<Prompt> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_TIER_STORES_H_
