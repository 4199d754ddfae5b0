#ifndef PANDO_TIERS_COPYING_MAPPED_PAGES_H_
#define PANDO_TIERS_COPYING_MAPPED_PAGES_H_

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/kv_pool.h"
#include "tiers/copying/page_blocks.h"

namespace pando {

// Copies pages of a pool in host memory, which it maps into this process. Its
// copies never fail.
class MappedPages final : public PageBlocks {
 public:
  // Maps the pool; fails if that is not possible. REQUIRES: the pool is in host
  // memory.
  static absl::StatusOr<std::unique_ptr<MappedPages>> Map(const KvPool& pool);
  ~MappedPages() override;

  absl::Status CopyOut(PageId page, std::byte* block) const override;
  absl::Status CopyIn(const std::byte* block, PageId page) const override;

 private:
  explicit MappedPages(const KvPool& pool) : PageBlocks(pool) {}

  std::vector<std::span<std::byte>> shards_;
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_MAPPED_PAGES_H_
