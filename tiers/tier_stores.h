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

// Stores what enters the cache, or what is hit there, on a thread of its own.
// Nobody waits for it, and eviction least of all: what comes faster than the
// tier can write, or is evicted before its turn, is not stored. Owned by Tiers.
class TierStores final : public EventSink {
 public:
  // Both outlive this. `stores_at_once`: what enters the cache, and not only
  // what is hit.
  TierStores(Mover* mover, StoreTarget* tier, bool stores_at_once);
  ~TierStores() override;

  void Stored(const CachedPages& pages, std::span<const PageId> run) override;
  void Hit(const CachedPages& pages, PageId last) override;
  void Removed(const CachedPages&, std::span<const PageId>,
               EvictionReason) override {}
  void Cleared() override {}
  bool EndTurn(const CachedPages*) override { return true; }

 private:
  // A prompt of which something is not stored.
  struct Prompt {
    NamespaceKey ns;
    std::vector<Token> tokens;
    std::vector<PageHash> hashes;

    size_t bytes() const;
    HashedPrompt AsHashed(uint32_t page_tokens) const {
      return {ns, tokens, hashes, page_tokens};
    }
  };

  static Prompt PromptOf(const CachedPages& pages, PageId last);
  // `new_pages` of it are not stored.
  void Queue(Prompt prompt, size_t new_pages);
  void Run();
  void Store(const Prompt& prompt);
  // False: it is not cached any more, or may not be locked.
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
