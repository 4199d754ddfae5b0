#ifndef PANDO_SERVICE_MEMORY_EARLIER_WRITERS_H_
#define PANDO_SERVICE_MEMORY_EARLIER_WRITERS_H_

#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/block_cache.h"
#include "core/prefix_cache.h"
#include "gpu/host_memory.h"
#include "gpu/kv_pool.h"

namespace pando {

// The workers of a pandod before this one, which map memory that this one has
// taken over. They may still write to what they had reserved, and read what
// they had locked. The ledger of blocks tells which blocks that were: these are
// in quarantine until none of these workers maps the block memory any more. Of
// pages, and of blocks without a ledger, it died with that pandod: all are in
// quarantine. Workers let go of the memory when they find their session lost.
// One that is idle may not look: after a time in which each has ended what it
// had begun, the memory is free all the same.
//
// Owned by Server. Its constructor runs before calls are served, Check on the
// polling thread.
class EarlierWriters {
 public:
  // All outlive it. `block_memory` is null where there is none;
  // `has_ledger_of_before` says whether the cache knows its blocks.
  // REQUIRES: the cache limits no session.
  // `quarantine` is the option; the time is not shorter than a minute.
  EarlierWriters(PrefixCache* cache, BlockCache* blocks, const KvPool& pool,
                 const HostMemory* block_memory, bool has_ledger_of_before,
                 absl::Duration quarantine);

  // The highest number of such a worker; later ones count up from there.
  WriterId last() const { return last_; }
  // Frees what none of them maps any more. To be called periodically.
  void Check();

 private:
  // Pages or blocks in quarantine, as those of a lost session.
  struct Withheld {
    SessionId session;
    SessionNumber number;
    std::function<bool()> is_mapped;
  };

  Withheld Reserve(const std::function<void(SessionId)>& reserve,
                   std::function<bool()> is_mapped);
  void Withhold(Withheld reserved);
  // Withholds them if a worker maps the memory, else frees them.
  void TakeEarlierBlocks(std::function<bool()> is_mapped);

  PrefixCache* const cache_;
  const absl::Duration time_;
  WriterId last_{0};
  std::vector<Withheld> withheld_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_EARLIER_WRITERS_H_
