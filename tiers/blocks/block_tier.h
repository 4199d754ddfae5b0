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

// Keeps copies of blocks on disk, which outlive pandod. It stores blocks that
// are published or found, and loads evicted ones again for calls that ask for
// them. It has a session of its own, as a worker has, which operators see.
//
// Owned by Server. No method waits. Methods that are not marked as thread-safe
// must be called in the turn.
class BlockTier {
 public:
  struct Config {
    std::string folder;
    uint64_t max_bytes = 0;
    // Whether blocks are stored when they are published, and not only when they
    // are used.
    bool stores_at_once = true;
  };
  // The pointers must outlive the tier, and none of `actions` may have run yet.
  struct Parts {
    PrefixCache* cache;
    BlockCache* blocks;
    const HostMemory* memory;
    TurnActions* actions;
  };

  // Opens the folder and starts the threads of the tier. Fails if the folder
  // cannot be used: see BlockFiles::Open.
  static absl::StatusOr<std::unique_ptr<BlockTier>> Start(const Config& config,
                                                          const Parts& parts);
  ~BlockTier();

  // Takes in the kinds that OpenKinds and FindKinds have answered. Kinds
  // without a number are skipped.
  void Opened(std::span<const BlockKind> kinds);
  // Takes in the kinds that ResetKinds has answered. Blocks of earlier
  // generations are not found in the tier any more.
  void Renewed(std::span<const BlockKind> kinds);
  // Returns whether the blocks that Renewed has taken away stay away for later
  // pandods on this folder, too. If not, the handler of `call` runs again once
  // it does, unless EndWait is called first.
  bool AreRenewed(Resumable& call);
  // Ends the wait of a call that AreRenewed has begun, if it still waits.
  void EndWait(Resumable& call) { waits_.erase(&call); }

  // Stores published blocks if Config::stores_at_once is set.
  void Published(std::vector<KeysOfKind> keys);
  // Returns the work that a call asks of the tier after it has searched the
  // memory.
  BlockLook Look(const AskedOfTier& asked, std::span<BlockPlace> places) {
    return {
        {.kept = &kept_, .stores = &stores_, .loads = &loads_}, asked, places};
  }

  // Returns whether the tier has a block. Thread-safe.
  bool Has(KindNumber kind, std::string_view key) const;
  // Begins no more loads and stores.
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
  // The calls that wait in AreRenewed, and how many erasures each waits for.
  absl::flat_hash_map<Resumable*, uint64_t> waits_;
  Wakeup* const renewed_;
  BlockStores stores_;
  BlockLoads loads_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_TIER_H_
