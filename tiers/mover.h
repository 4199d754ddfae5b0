#ifndef PANDO_TIERS_MOVER_H_
#define PANDO_TIERS_MOVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "core/prefix_cache.h"
#include "core/requests/namespace_key.h"
#include "os/turn.h"
#include "tiers/copying/page_movers.h"

namespace pando {

// The worker that copies pages between the cache and a tier: it has a session,
// which operators see, as other workers have. This class makes its calls of the
// cache. Owned by Tiers. Thread-safe; it takes the turn where pages are handed
// out or published, as handlers do.
//
// A flush must not find pages that only the mover locks, nor miss those that it
// publishes later: EndAll ends all that was begun.
class Mover {
 public:
  // The part of the pool that the stores of a tier may lock, and the part that
  // loads may lock and reserve, is one of so many: a slow disk leaves the rest
  // to the workers.
  static constexpr size_t kPoolParts = 4;

  // A prefix that stays what it is until its lock is released.
  struct LockedPrefix {
    LockId lock;
    std::vector<PageId> pages;
  };
  // Room for pages that follow a cached prefix. Others wait for the first of
  // them.
  struct Reservation {
    LockId lock;
    uint32_t matched_pages;
    std::vector<PageId> pages;
  };

  // Called in the turn with what a load has reserved, and with what it has made
  // matchable, so that these pages are verified as those of workers. Empty:
  // no pages are verified.
  struct Verifier {
    std::function<void(std::span<const PageId>)> reserved = nullptr;
    std::function<void(std::span<const PageId>)> inserted = nullptr;
  };

  // All outlive this. `movers` is null, unless pando-movers copy the pages.
  // Opens the session.
  Mover(PrefixCache* cache, Turn* turn, Verifier verifier,
        const PageMovers* movers);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // Releases all locks: what is being stored is not confirmed, and what is
  // being loaded is given back. In the turn.
  void EndAll();
  // EndAll; and nothing is locked or reserved until what it returns is
  // destroyed. In the turn.
  std::shared_ptr<const void> Pause();
  // Counts the calls of EndAll.
  uint64_t generation() const;

  // Whether pages can be copied now. If not, nothing is locked or reserved.
  bool CanCopy() const { return movers_ == nullptr || movers_->AreReady(); }

  // Locks as many of the first `pages` pages of a prompt as are cached. None:
  // the cache refuses a lock, or there is a pause.
  std::optional<LockedPrefix> Lock(const NamespaceKey& ns,
                                   std::span<const Token> tokens, size_t pages);
  // False: it had been released before.
  bool Unlock(LockId lock);
  // Whether the lock is held still: EndAll ends it.
  bool Holds(LockId lock) const;

  // Reserves room for what is not cached of the first `pages` pages of a
  // prompt. None: there is no room, a worker computes them already, or it was
  // asked for in an earlier generation or during a pause.
  std::optional<Reservation> Reserve(const NamespaceKey& ns,
                                     std::span<const Token> tokens,
                                     size_t pages, uint64_t generation);
  // Whether a call waits for the page after a lock.
  bool IsAwaited(LockId lock) const {
    return cache_->IsAwaited(session_, lock);
  }
  // Makes the first `count` pages of `rest` matchable, which is what is left of
  // the reservation; with `is_last` gives back the others and the lock. False:
  // the lock was released, and all is given back.
  bool Publish(const NamespaceKey& ns, LockId lock,
               std::span<const PageId> rest, size_t count, bool is_last);

  // That it has reserved and not yet published or given back.
  size_t reserved_pages() const;

  PrefixCache& cache() const { return *cache_; }
  Turn& turn() const { return *turn_; }

 private:
  bool IsPaused() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !pause_.expired();
  }
  void GiveBack(LockId lock, std::span<const PageId> pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  PrefixCache* const cache_;
  Turn* const turn_;
  const Verifier verifier_;
  const PageMovers* const movers_;
  const SessionId session_;
  mutable absl::Mutex mutex_;  // taken after the turn, before the cache's
  absl::flat_hash_set<LockId> locks_ ABSL_GUARDED_BY(mutex_);
  size_t reserved_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::weak_ptr<const void> pause_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_TIERS_MOVER_H_
