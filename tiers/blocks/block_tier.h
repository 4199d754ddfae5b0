#ifndef PANDO_TIERS_BLOCKS_BLOCK_TIER_H_
#define PANDO_TIERS_BLOCKS_BLOCK_TIER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/block_cache.h"
#include "core/prefix_cache.h"
#include "gpu/host_memory.h"
#include "os/resumable.h"
#include "os/turn_actions.h"
#include "tiers/blocks/block_bytes.h"
#include "tiers/blocks/block_files.h"
#include "tiers/blocks/block_loads.h"
#include "tiers/blocks/block_look.h"
#include "tiers/blocks/block_stores.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Copies of blocks on disk, which outlive pandod: what is published, or found,
// is stored, and what was evicted since is loaded again for calls that ask for
// it. It has a session, which operators see, as other workers have.
//
// Owned by Server. Handlers use it in the turn, and no call of it waits; what
// is not marked as thread-safe is for them alone.
class BlockTier {
 public:
  struct Config {
    std::string folder;
    uint64_t max_bytes = 0;
    // Published blocks are stored, not only acquired ones.
    bool stores_at_once = true;
  };
  // All outlive the tier; none of the actions has run yet.
  struct Parts {
    PrefixCache* cache;
    BlockCache* blocks;
    const HostMemory* memory;
    TurnActions* actions;
  };

  static absl::StatusOr<std::unique_ptr<BlockTier>> Start(const Config& config,
                                                          const Parts& parts);
  ~BlockTier();

  // What OpenKinds and FindKinds have answered.
  void Opened(std::span<const BlockKind> kinds);
  // What ResetKinds has answered: nothing that is stored of the generations
  // before is found any more.
  void Renewed(std::span<const BlockKind> kinds);
  // Whether this is so also for the pandods after this one. If not, it runs the
  // handler of `call` again when it is, unless EndWait comes first.
  bool AreRenewed(Resumable& call);
  void EndWait(Resumable& call) { waits_.erase(&call); }

  // Stores them, if it does so at once.
  void Published(std::vector<KeysOfKind> keys);
  // The work that a call asks for when it has searched the memory.
  BlockLook Look(const AskedOfTier& asked, std::span<BlockPlace> places) {
    return {
        {.kept = &kept_, .stores = &stores_, .loads = &loads_}, asked, places};
  }

  // Whether it has a block. Thread-safe.
  bool Has(KindNumber kind, std::string_view key) const;
  // Nothing is loaded or stored any more.
  void BeginDrain();
  // Thread-safe.
  BlockTierFigures figures() const;

 private:
  BlockTier(const Config& config, const Parts& parts, UniqueFd memory,
            std::unique_ptr<BlockFiles> files);

  void ResumeRenewed();

  PrefixCache* const cache_;
  const bool stores_at_once_;
  const SessionId session_;
  const BlockBytes bytes_;
  KeptBlocks kept_;
  const std::unique_ptr<BlockFiles> files_;
  BlockTierCounts counts_;
  // Calls that wait for so many erasures.
  absl::flat_hash_map<Resumable*, uint64_t> waits_;
  Wakeup* const renewed_;
  BlockStores stores_;
  BlockLoads loads_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_TIER_H_
