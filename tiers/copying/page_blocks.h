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

// Copies pages between a pool and blocks: all of a page's bytes, shard after
// shard, in the order that does not depend on the pool's layout. Owned by a
// tier. Thread-safe; a page must not be written while it is copied.
class PageBlocks {
 public:
  virtual ~PageBlocks() = default;
  PageBlocks(const PageBlocks&) = delete;
  PageBlocks& operator=(const PageBlocks&) = delete;

  uint64_t block_bytes() const;
  // Pools with the same one may exchange blocks. Strides that depend on a
  // pool's size or order are not in it.
  uint64_t Digest(const std::string& model) const;
  // The same as of the page that was copied.
  uint64_t Checksum(const std::byte* block) const;

  // After an error the block has any contents.
  virtual absl::Status CopyOut(PageId page, std::byte* block) const = 0;
  // After an error the page has any contents.
  virtual absl::Status CopyIn(const std::byte* block, PageId page) const = 0;

 protected:
  explicit PageBlocks(const KvPool& pool);

  const KvLayout& layout() const { return layout_; }
  size_t num_shards() const { return num_shards_; }
  // A shard's part of a block, as a buffer of one page.
  PageMemory PartOf(const std::byte* block, size_t shard) const;

 private:
  const KvLayout layout_;
  const KvLayout block_layout_;
  const size_t num_shards_;
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_PAGE_BLOCKS_H_
