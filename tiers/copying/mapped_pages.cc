#include "tiers/copying/mapped_pages.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "gpu/page_copy.h"

namespace pando {

absl::StatusOr<std::unique_ptr<MappedPages>> MappedPages::Map(
    const KvPool& pool) {
  auto mapped = absl::WrapUnique(new MappedPages(pool));
  for (const KvShard& shard : pool.shards()) {
    ASSIGN_OR_RETURN(const UniqueFd fd, pool.ExportShard(shard.index));
    void* const base = mmap(nullptr, shard.size_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd.get(), 0);
    if (base == MAP_FAILED) {
      return absl::ErrnoToStatus(errno, "cannot map a shard for its tier");
    }
    mapped->shards_.emplace_back(static_cast<std::byte*>(base),
                                 shard.size_bytes);
  }
  return mapped;
}

MappedPages::~MappedPages() {
  for (const std::span<std::byte> shard : shards_) {
    munmap(shard.data(), shard.size());
  }
}

absl::Status MappedPages::CopyOut(PageId page, std::byte* block) const {
  const uint32_t id = page.value();
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    RETURN_IF_ERROR(CopyPagesOnHost({layout(), shards_[shard].data(), &id},
                                    PartOf(block, shard), 1));
  }
  return absl::OkStatus();
}

absl::Status MappedPages::CopyIn(const std::byte* block, PageId page) const {
  const uint32_t id = page.value();
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    RETURN_IF_ERROR(CopyPagesOnHost(PartOf(block, shard),
                                    {layout(), shards_[shard].data(), &id}, 1));
  }
  return absl::OkStatus();
}

}  // namespace pando
