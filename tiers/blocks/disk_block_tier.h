#ifndef PANDO_TIERS_BLOCKS_DISK_BLOCK_TIER_H_
#define PANDO_TIERS_BLOCKS_DISK_BLOCK_TIER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/prefix_cache.h"
#include "tiers/blocks/block_copies.h"
#include "tiers/blocks/block_files.h"
#include "tiers/blocks/block_loads.h"
#include "tiers/blocks/block_stores.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/disk_source.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Copies of blocks in files, which outlive pandod. KeptBlocks knows which there
// are. Owned by BlockTier; thread-safe.
class DiskBlockTier {
 public:
  // The pointers must outlive the tier.
  struct Parts {
    PrefixCache* cache;
    BlockCopies* copies;
    KeptBlocks* kept;
    uint64_t memory_bytes;
  };

  // See BlockStores for `on_erased`.
  DiskBlockTier(std::unique_ptr<BlockFiles> files, const Parts& parts,
                std::function<void()> on_erased)
      : kept_(parts.kept),
        files_(std::move(files)),
        source_(kept_, files_.get(), &counts_),
        stores_({.copies = parts.copies,
                 .kept = kept_,
                 .files = files_.get(),
                 .counts = &counts_},
                std::move(on_erased)),
        loads_({.cache = parts.cache,
                .copies = parts.copies,
                .source = &source_,
                .counts = &counts_,
                .memory_bytes = parts.memory_bytes}) {}

  BlockStores& stores() { return stores_; }
  BlockLoads& loads() { return loads_; }
  void BeginDrain() {
    stores_.BeginDrain();
    loads_.BeginDrain();
  }
  BlockTierFigures figures() const {
    const KeptBlocks::Totals totals = kept_->totals();
    BlockTierFigures figures = FiguresOf(counts_);
    figures.capacity_bytes = totals.max_bytes;
    figures.held_bytes = totals.bytes;
    figures.held_blocks = totals.blocks;
    figures.index_bytes = totals.index_bytes;
    return figures;
  }

 private:
  KeptBlocks* const kept_;
  const std::unique_ptr<BlockFiles> files_;
  BlockTierCounts counts_;
  DiskSource source_;
  BlockStores stores_;
  BlockLoads loads_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_DISK_BLOCK_TIER_H_
