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

// Makes the calls that the tiers need from the cache: it locks the pages that
// are stored, and reserves and publishes those that are loaded. It has a
// session of its own, as a worker has, which operators see. It copies no bytes.
// Owned by Tiers. Thread-safe. Reserve and Publish take the turn, as handlers
// do, because they hand out or publish pages.
//
// EndAll ends all that was begun. A flush needs that: locks of the mover would
// keep pages from it, and a load would publish pages after it that it should
// have evicted.
class Mover {
 public:
  // The stores of a tier lock at most 1/kPoolParts of the pool, and all loads
  // together lock and reserve at most as much. A slow disk therefore leaves the
  // rest to the workers.
  static constexpr size_t kPoolParts = 4;

  // A locked prefix. Its pages keep their contents until the lock is released.
  struct LockedPrefix {
    LockId lock;
    std::vector<PageId> pages;
  };
  // Pages that are reserved to follow a cached prefix of `matched_pages` pages,
  // which `lock` keeps. The first of them is pending: other calls may wait for
  // it.
  struct Reservation {
    LockId lock;
    uint32_t matched_pages;
    std::vector<PageId> pages;
  };

  // Callbacks that let loaded pages be verified like the pages of workers.
  // Reserve calls `reserved` with the pages that it has reserved; Publish calls
  // `inserted` with those that it has published. Both are called in the turn.
  // Empty functions mean that no pages are verified.
  struct Verifier {
    std::function<void(std::span<const PageId>)> reserved = nullptr;
    std::function<void(std::span<const PageId>)> inserted = nullptr;
  };

  // Opens the session. The pointers must outlive this object. `movers` is null
  // if this process copies the pages itself.
  Mover(PrefixCache* cache, Turn* turn, Verifier verifier,
        const PageMovers* movers);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // Releases all locks. Stores that are under way are then not confirmed, and
  // loads that are under way give their pages back. Must be called in the turn.
  void EndAll();
  // Calls EndAll. Until all returned objects are destroyed, Lock and Reserve
  // return none. Must be called in the turn.
  std::shared_ptr<const void> Pause();
  // Counts the calls of EndAll.
  uint64_t generation() const;

  // Returns whether pages can be copied now. If not, Lock and Reserve return
  // none.
  bool CanCopy() const { return movers_ == nullptr || movers_->AreReady(); }

  // Locks as many of the first `pages` pages of a prompt as are cached. Returns
  // none if pages cannot be copied now, the cache refuses the lock, or there is
  // a pause.
  std::optional<LockedPrefix> Lock(const NamespaceKey& ns,
                                   std::span<const Token> tokens, size_t pages);
  // Releases a lock. Returns false if it had been released before.
  bool Unlock(LockId lock);
  // Returns whether the lock is still held. EndAll ends all locks.
  bool Holds(LockId lock) const;

  // Locks what is cached of the first `pages` pages of a prompt, and reserves
  // pages for the rest. Returns none if pages cannot be copied now, there is no
  // room, a worker already computes the next page, there is a pause, or EndAll
  // was called since generation() returned `generation`. Takes the turn.
  std::optional<Reservation> Reserve(const NamespaceKey& ns,
                                     std::span<const Token> tokens,
                                     size_t pages, uint64_t generation);
  // Returns whether a call waits for the page after a lock.
  bool IsAwaited(LockId lock) const {
    return cache_->IsAwaited(session_, lock);
  }
  // Publishes the first `count` pages of `rest`, which are the pages of a
  // reservation that are not published yet. With `is_last`, or when `count` is
  // 0, it gives the other pages back and releases the lock. Returns false if
  // the cache refuses the pages, as it does when the lock was released; then
  // all are given back. Takes the turn.
  bool Publish(const NamespaceKey& ns, LockId lock,
               std::span<const PageId> rest, size_t count, bool is_last);

  // The number of pages that are reserved, and neither published nor given back
  // yet.
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
