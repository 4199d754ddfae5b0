#ifndef PANDO_SERVICE_TIERS_MAPPED_PAGES_H_
#define PANDO_SERVICE_TIERS_MAPPED_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "gpu/kv_pool.h"
#include "gpu/page_memory.h"

namespace pando {

// Copies pages between a pool in host memory, which it maps, and blocks: all of
// a page's bytes, shard after shard, in the order that does not depend on the
// pool's layout. Owned by a tier. Thread-safe; a page must not be written
// while it is copied.
class MappedPages {
 public:
  // The pool must be in host memory.
  static absl::StatusOr<std::unique_ptr<MappedPages>> Map(const KvPool& pool);
  ~MappedPages();
  MappedPages(const MappedPages&) = delete;
  MappedPages& operator=(const MappedPages&) = delete;

  uint64_t block_bytes() const;
  // Pools with the same one may exchange blocks. Strides that depend on a
  // pool's size or order are not in it.
  uint64_t Digest(const std::string& model) const;

  void CopyOut(PageId page, std::byte* block) const;
  void CopyIn(const std::byte* block, PageId page) const;
  // The same as of the page that was copied.
  uint64_t Checksum(const std::byte* block) const;

 private:
  explicit MappedPages(const KvLayout& layout);

  PageMemory BlockOf(size_t shard, const std::byte* block) const;

  const KvLayout layout_;
  const KvLayout block_layout_;
  std::vector<std::span<std::byte>> shards_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_MAPPED_PAGES_H_
