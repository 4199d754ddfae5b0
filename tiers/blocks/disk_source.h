#ifndef PANDO_TIERS_BLOCKS_DISK_SOURCE_H_
#define PANDO_TIERS_BLOCKS_DISK_SOURCE_H_

#include <cstddef>
#include <memory>
#include <span>

#include "tiers/blocks/block_files.h"
#include "tiers/blocks/block_source.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/sealed_block.h"

namespace pando {

// Reads blocks from files. A damaged block is deleted and forgotten. Owned by
// DiskBlockTier, and used by the thread of its loads.
class DiskSource final : public BlockSource {
 public:
  // The pointers must outlive this object.
  DiskSource(KeptBlocks* kept, BlockFiles* files, BlockTierCounts* counts)
      : kept_(kept), files_(files), counts_(counts) {}

  size_t most_at_once() const override { return 1; }
  uint64_t ValueBytes(const TierKind& kind) const override {
    return seal_.ValueBytes(kind);
  }
  void Read(const std::shared_ptr<KnownKind>& kind,
            std::span<BlockRead> blocks) override;

 private:
  absl::Status ReadOne(const KnownKind& kind, const BlockRead& block);

  KeptBlocks* const kept_;
  BlockFiles* const files_;
  BlockTierCounts* const counts_;
  const BlockSeal seal_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_DISK_SOURCE_H_
