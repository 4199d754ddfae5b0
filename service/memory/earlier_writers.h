#ifndef PANDO_SERVICE_MEMORY_EARLIER_WRITERS_H_
#define PANDO_SERVICE_MEMORY_EARLIER_WRITERS_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/block_cache.h"
#include "core/prefix_cache.h"
#include "gpu/host_memory.h"
#include "gpu/kv_pool.h"

namespace pando {

// The workers of an earlier pandod, which may still map memory that this pandod
// has taken over. They may still write to what they had reserved, and read what
// they had locked. Therefore these pages and blocks are in quarantine until
// none of these workers maps the memory any more. A ledger tells which ones
// they are; locked pages stay in the tree, with locks of an internal session.
// Without a ledger that knowledge died with the earlier pandod, so all pages or
// blocks are in quarantine.
//
// Workers unmap the memory when they find their session lost. An idle worker
// may not look, so the quarantine also ends after a time in which each worker
// has ended what it had begun.
//
// Owned by Server. Its constructor runs before calls are served, Check on the
// polling thread.
class EarlierWriters {
 public:
  // Says of which memory the cache has taken over the earlier pandod's ledger.
  struct Ledgers {
    bool pages = false;
    bool blocks = false;
  };

  // Puts what earlier workers may use in quarantine, for `quarantine` or a
  // minute, whichever is longer. All pointers and `pool` outlive it.
  // `block_memory` is null if there is none. REQUIRES: the cache limits no
  // session meanwhile (the caller lifts limits).
  EarlierWriters(PrefixCache* cache, BlockCache* blocks, const KvPool& pool,
                 const HostMemory* block_memory, Ledgers of_before,
                 absl::Duration quarantine);

  // Returns the highest writer number of these workers, or 0 if there are none.
  // The writers of this pandod get higher numbers.
  WriterId last() const { return last_; }
  // Ends the quarantine of memory that no earlier worker maps any more. To be
  // called periodically.
  void Check();

 private:
  // Pages or blocks in quarantine, held by an internal session that is lost; or
  // locked prefixes, held by an internal session that lives.
  struct Withheld {
    SessionId session;
    SessionNumber number;
    std::function<bool()> is_mapped;
    absl::Time until = absl::InfiniteFuture();
  };

  // Opens an internal session and has `reserve` reserve pages or blocks for it.
  Withheld Reserve(const std::function<void(SessionId)>& reserve,
                   std::function<bool()> is_mapped);
  // Puts what the session holds in quarantine.
  void Withhold(Withheld reserved);
  // Take what the ledger shows as in use. They put it in quarantine if an
  // earlier worker maps the memory, else they free it.
  void TakeEarlierPages(std::function<bool()> is_mapped);
  void TakeEarlierBlocks(std::function<bool()> is_mapped);
  // Opens an internal session.
  Withheld Open(std::function<bool()> is_mapped);
  void WithholdIf(size_t in_use, Withheld taken);

  PrefixCache* const cache_;
  const absl::Duration time_;
  WriterId last_{0};
  std::vector<Withheld> withheld_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_EARLIER_WRITERS_H_
