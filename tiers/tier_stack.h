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
// memory first, then the disk, then the shared store. Owned by Tiers, which
// owns the tiers, too; as thread-safe as they are.
class TierStack {
 public:
  // The part of a run of pages that is known to be kept.
  struct KeptRun {
    size_t pages = 0;  // at its front
    KeptIn slowest = KeptIn::kNowhere;
  };

  // Any may be null.
  TierStack(LocalTier* host, LocalTier* disk, RemoteTier* remote);

  // How many pages at the front of `run` can be loaded. Asks the shared store,
  // for a fraction of a second at most.
  size_t CountLoadable(uint64_t ns_digest, std::span<const PageHash> run);
  // What the tiers of this machine have of it, which is known without asking
  // anybody. Thread-safe.
  KeptRun CountKept(std::span<const PageHash> run) const;
  // A prompt is in use.
  void Touch(std::span<const PageHash> prompt);
  // Fills `pages` with the blocks of `run`. Returns how many from the front
  // are what they were when they were stored; the others have any contents.
  size_t Load(uint64_t ns_digest, std::span<const PageHash> run,
              std::span<const PageId> pages);
  // Forgets what is stored of a namespace, or being stored; none: of all. It
  // waits for no disk; EraseForgotten, which the thread that loads calls after
  // it, does.
  void Forget(std::optional<uint64_t> ns_digest);
  void EraseForgotten();
  // Which configuration of the model computes from now on. EraseForgotten is
  // called after it, too.
  void SetModel(uint64_t model);

 private:
  struct Local {
    LocalTier* tier;
    KeptIn where;
  };

  // Load from the tiers of this machine.
  size_t LoadKept(std::span<const PageHash> run, std::span<const PageId> pages);

  std::vector<Local> local_;  // the fastest first
  RemoteTier* const remote_;
};

}  // namespace pando

#endif  // PANDO_TIERS_TIER_STACK_H_
