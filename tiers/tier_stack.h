#ifndef PANDO_TIERS_TIER_STACK_H_
#define PANDO_TIERS_TIER_STACK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "tiers/local/local_tier.h"
#include "tiers/prefix_loader.h"
#include "tiers/shared/remote_tier.h"

namespace pando {

// The tiers below the pool, in the order in which TierLoads asks them: host
// memory, the disk, the shared store. Owned by Tiers, which also owns the
// tiers. As thread-safe as the tiers are.
class TierStack {
 public:
  // The part of a run of pages that is known to be kept.
  struct KeptRun {
    size_t pages = 0;  // at its front
    KeptIn slowest = KeptIn::kNowhere;
  };

  // Each is null if there is no such tier.
  TierStack(LocalTier* host, LocalTier* disk, RemoteTier* remote);

  // Returns how many pages at the front of `run` can be loaded. May ask the
  // shared store, which takes a fraction of a second at most.
  size_t CountLoadable(uint64_t ns_digest, std::span<const PageHash> run);
  // Returns how much of the front of `run` the tiers of this machine have. Does
  // no I/O. Thread-safe.
  KeptRun CountKept(std::span<const PageHash> run) const;
  // Counts as a use of what the tiers of this machine have of a prompt.
  void Touch(std::span<const PageHash> prompt);
  // Fills `pages` with the blocks of `run`. Returns how many pages from the
  // front now hold what was stored; the contents of the others are undefined.
  size_t Load(uint64_t ns_digest, std::span<const PageHash> run,
              std::span<const PageId> pages);
  // Forgets the blocks of a namespace, or of all namespaces with none,
  // including those that are being stored. Does not wait for the disk.
  // EraseForgotten must be called after it, by the load thread; that erases
  // them there.
  void Forget(std::optional<uint64_t> ns_digest);
  // Erases what Forget and SetModel have made the local tiers forget. Waits for
  // the disk.
  void EraseForgotten();
  // Says which configuration of the model computes from now on. EraseForgotten
  // must be called after it, too.
  void SetModel(uint64_t model);

 private:
  struct Local {
    LocalTier* tier;
    KeptIn where;
  };

  // Does what Load does, with the tiers of this machine only.
  size_t LoadKept(std::span<const PageHash> run, std::span<const PageId> pages);

  std::vector<Local> local_;  // the fastest first
  RemoteTier* const remote_;
};

}  // namespace pando

#endif  // PANDO_TIERS_TIER_STACK_H_
