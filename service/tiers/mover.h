#ifndef PANDO_SERVICE_TIERS_MOVER_H_
#define PANDO_SERVICE_TIERS_MOVER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/namespace_key.h"
#include "core/prefix_cache.h"
#include "service/calls/call_policy.h"
#include "service/memory/page_verifier.h"

namespace pando {

// What copies pages between the cache and a tier is a worker among others, with
// a session that operators see. This is what it asks of the cache. Owned by
// Tiers. Thread-safe; it takes the turn where pages are handed out or
// published, as handlers do.
class Mover {
 public:
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

  // All outlive this; `verifier` may be null. Opens the session.
  Mover(PrefixCache* cache, CallPolicy* policy, PageVerifier* verifier);
  ~Mover();
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  // Locks as many of the first `pages` pages of a prompt as are cached. None:
  // the cache refuses a lock.
  std::optional<LockedPrefix> Lock(const NamespaceKey& ns,
                                   std::span<const Token> tokens, size_t pages);
  // False: somebody had released it before.
  bool Unlock(LockId lock);

  // Reserves room for what is not cached of the first `pages` pages of a
  // prompt. None: there is no room, or somebody computes them already.
  std::optional<Reservation> Reserve(const NamespaceKey& ns,
                                     std::span<const Token> tokens,
                                     size_t pages);
  // Makes the first `count` pages of `rest` matchable, which is what is left of
  // the reservation; with `is_last` gives back the others and the lock. False:
  // an operator has released the lock, and all is given back.
  bool Publish(const NamespaceKey& ns, LockId lock,
               std::span<const PageId> rest, size_t count, bool is_last);

  PrefixCache& cache() const { return *cache_; }

 private:
  void GiveBack(LockId lock, std::span<const PageId> pages);

  PrefixCache* const cache_;
  CallPolicy* const policy_;
  PageVerifier* const verifier_;
  const SessionId session_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_MOVER_H_
