#ifndef PANDO_TIERS_COPYING_PAGE_BLOCKS_H_
#define PANDO_TIERS_COPYING_PAGE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/ids.h"
#include "gpu/kv_pool.h"
#include "gpu/page_memory.h"

namespace pando {

// Copies pages between a pool and blocks. A block has all bytes of a page,
// shard after shard, in an order that does not depend on the layout of the
// pool. Owned by a tier. Thread-safe; a page must not be written while it is
// copied.
class PageBlocks {
 public:
  virtual ~PageBlocks() = default;
  PageBlocks(const PageBlocks&) = delete;
  PageBlocks& operator=(const PageBlocks&) = delete;

  // The size of a block: all bytes of a page in all shards.
  uint64_t block_bytes() const;
  // Returns a digest of `model` and of the shape of the pages. Pools with the
  // same digest may exchange blocks. Strides do not count, because they depend
  // on the size and order of a pool.
  uint64_t Digest(const std::string& model) const;
  // Returns the checksum of a block. It equals the checksum of the page that
  // was copied to the block.
  uint64_t Checksum(const std::byte* block) const;

  // Copies a page to a block. After an error the contents of the block are
  // undefined.
  virtual absl::Status CopyOut(PageId page, std::byte* block) const = 0;
  // Copies a block to a page. After an error the contents of the page are
  // undefined.
  virtual absl::Status CopyIn(const std::byte* block, PageId page) const = 0;

 protected:
  explicit PageBlocks(const KvPool& pool);

  const KvLayout& layout() const { return layout_; }
  size_t num_shards() const { return num_shards_; }
  // Returns the part of a block that belongs to a shard, as the memory of one
  // page.
  PageMemory PartOf(const std::byte* block, size_t shard) const;

 private:
  const KvLayout layout_;
  const KvLayout block_layout_;
  const size_t num_shards_;
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_PAGE_BLOCKS_H_
