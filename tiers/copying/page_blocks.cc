#include "tiers/copying/page_blocks.h"

#include "gpu/page_checksum.h"
#include "gpu/page_checksum_plan.h"
#include "gpu/page_checksummer.h"

namespace pando {

PageBlocks::PageBlocks(const KvPool& pool)
    : layout_(pool.layout()),
      block_layout_(PageBuffer(pool.layout(), nullptr).layout),
      num_shards_(pool.shards().size()) {}

uint64_t PageBlocks::block_bytes() const {
  return PageBytes(layout_) * num_shards_;
}

uint64_t PageBlocks::Digest(const std::string& model) const {
  return MixWord(Fingerprint(block_layout_, model), num_shards_);
}

// The cast is safe for a copy that only reads the block: PageMemory has no type
// for memory that is read only.
PageMemory PageBlocks::PartOf(const std::byte* block, size_t shard) const {
  return {.layout = block_layout_,
          .base = const_cast<std::byte*>(block) + shard * PageBytes(layout_)};
}

uint64_t PageBlocks::Checksum(const std::byte* block) const {
  uint64_t joined = 0;
  for (size_t shard = 0; shard < num_shards_; ++shard) {
    uint64_t checksum = 0;
    ChecksumPagesOnHost(PartOf(block, shard), 1, &checksum);
    joined = JoinShards(joined, checksum);
  }
  return joined;
}

}  // namespace pando
