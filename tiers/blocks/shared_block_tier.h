#ifndef PANDO_TIERS_BLOCKS_SHARED_BLOCK_TIER_H_
#define PANDO_TIERS_BLOCKS_SHARED_BLOCK_TIER_H_

#include <cstdint>
#include <memory>

#include "absl/time/time.h"
#include "core/prefix_cache.h"
#include "tiers/blocks/block_copies.h"
#include "tiers/blocks/block_loads.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/shared_asks.h"
#include "tiers/blocks/shared_blocks.h"
#include "tiers/blocks/shared_source.h"
#include "tiers/blocks/shared_stores.h"
#include "tiers/shared_store.h"

namespace pando {

// Copies of blocks in a store that many machines share. The tier must ask the
// store which blocks it has, and verifies the blocks that it gets. Owned by
// BlockTier; thread-safe.
class SharedBlockTier {
 public:
  // How long calls of the store may take. Calls that get or put blocks get a
  // deadline after half of this time, so that they can end by themselves before
  // the wait is given up.
  struct Timeouts {
    absl::Duration ask = absl::Milliseconds(250);
    absl::Duration get = absl::Seconds(2);
    absl::Duration put = absl::Seconds(5);
  };
  // The pointers must outlive the tier.
  struct Parts {
    PrefixCache* cache;
    BlockCopies* copies;
    const KeptBlocks* kinds;
    uint64_t memory_bytes;
  };

  SharedBlockTier(SharedStore store, const Timeouts& timeouts,
                  const Parts& parts);

  SharedAsks& asks() { return asks_; }
  // See BlockStores.
  void Note(StoreNote note) { stores_.Note(std::move(note)); }
  // Begins to erase the blocks of a kind that was reset. Until they are erased,
  // nothing of this kind is loaded or stored.
  void EraseKind(uint64_t kind) { shared_.EraseKind(kind); }
  void BeginDrain();
  BlockTierFigures figures() const;

 private:
  BlockTierCounts counts_;
  SharedBlocks shared_;
  SharedSource source_;
  BlockLoads loads_;
  SharedAsks asks_;
  SharedStores stores_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_BLOCK_TIER_H_
