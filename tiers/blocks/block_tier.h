#ifndef PANDO_TIERS_BLOCKS_BLOCK_TIER_H_
#define PANDO_TIERS_BLOCKS_BLOCK_TIER_H_

#include <cstdint>
#include <memory>
#include <optional>
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
#include "tiers/blocks/block_copies.h"
#include "tiers/blocks/block_files.h"
#include "tiers/blocks/block_look.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/disk_block_tier.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/shared_block_tier.h"
#include "tiers/shared_store.h"

namespace pando {

// Keeps copies of blocks outside the block memory: on disk, in a store that
// many machines share, or in both. It stores blocks that are published or
// acquired, and loads blocks that the memory lacks for calls that ask for them.
// It has a session of its own, as a worker has, which operators see.
//
// Owned by Server. No method waits. Methods that are not marked as thread-safe
// must be called in the turn.
class BlockTier {
 public:
  struct Config {
    // Where the disk tier is; none if the folder is empty.
    BlockFiles::Config disk;
    // None: blocks are not shared.
    std::optional<SharedStore> shared;
    SharedBlockTier::Timeouts timeouts;
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

  // Opens the folder and starts the threads of the tiers. Fails if the folder
  // cannot be used: see BlockFiles::Open.
  static absl::StatusOr<std::unique_ptr<BlockTier>> Start(Config config,
                                                          const Parts& parts);
  ~BlockTier();

  // Takes in the kinds that OpenKinds and FindKinds have answered. Kinds
  // without a number are skipped.
  void Opened(std::span<const BlockKind> kinds);
  // Takes in the kinds that ResetKinds has answered. Blocks of earlier
  // generations are not found in the tiers any more.
  void Renewed(std::span<const BlockKind> kinds);
  // Returns whether the blocks that Renewed has taken away stay away from later
  // pandods on this disk, too. If not, the handler of `call` runs again once
  // they do, unless EndWait is called first.
  bool AreRenewed(Resumable& call);
  // Ends the wait of a call that AreRenewed has begun, if it still waits.
  void EndWait(Resumable& call) { waits_.erase(&call); }

  // Stores published blocks if Config::stores_at_once is set.
  void Published(std::vector<KeysOfKind> keys);
  // Returns the work that a call asks of the tiers after it has searched the
  // memory.
  BlockLook Look(const AskedOfTier& asked, std::span<BlockPlace> places) {
    return {{.kept = &kept_, .disk = disk_.get(), .shared = shared_.get()},
            asked,
            places};
  }

  // Returns whether the disk has a block. Thread-safe.
  bool Has(KindNumber kind, std::string_view key) const;
  // Begins no more loads and stores.
  void BeginDrain();
  // Thread-safe.
  BlockTiersFigures figures() const;

 private:
  BlockTier(Config config, const Parts& parts, UniqueFd memory,
            std::unique_ptr<BlockFiles> files);

  void ResumeRenewed();

  PrefixCache* const cache_;
  const bool stores_at_once_;
  const SessionId session_;
  BlockCopies copies_;
  KeptBlocks kept_;
  // The calls that wait in AreRenewed, and how many erasures each waits for.
  absl::flat_hash_map<Resumable*, uint64_t> waits_;
  Wakeup* const renewed_;
  std::unique_ptr<DiskBlockTier> disk_;      // may be null
  std::unique_ptr<SharedBlockTier> shared_;  // may be null
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_TIER_H_
