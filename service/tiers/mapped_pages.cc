#include "service/tiers/mapped_pages.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "gpu/page_checksum.h"
#include "gpu/page_checksum_plan.h"
#include "gpu/page_checksummer.h"
#include "gpu/page_copy.h"

namespace pando {

absl::StatusOr<std::unique_ptr<MappedPages>> MappedPages::Map(
    const KvPool& pool) {
  auto mapped = absl::WrapUnique(new MappedPages(pool.layout()));
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

MappedPages::MappedPages(const KvLayout& layout)
    : layout_(layout), block_layout_(PageBuffer(layout, nullptr).layout) {}

MappedPages::~MappedPages() {
  for (const std::span<std::byte> shard : shards_) {
    munmap(shard.data(), shard.size());
  }
}

uint64_t MappedPages::block_bytes() const {
  return PageBytes(layout_) * shards_.size();
}

uint64_t MappedPages::Digest(const std::string& model) const {
  return MixWord(Fingerprint(block_layout_, model), shards_.size());
}

// It is only read through what copies from it.
PageMemory MappedPages::BlockOf(size_t shard, const std::byte* block) const {
  return {.layout = block_layout_,
          .base = const_cast<std::byte*>(block) + shard * PageBytes(layout_)};
}

void MappedPages::CopyOut(PageId page, std::byte* block) const {
  const uint32_t id = page.value();
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    CHECK(CopyPagesOnHost({layout_, shards_[shard].data(), &id},
                          BlockOf(shard, block), 1)
              .ok());
  }
}

void MappedPages::CopyIn(const std::byte* block, PageId page) const {
  const uint32_t id = page.value();
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    CHECK(CopyPagesOnHost(BlockOf(shard, block),
                          {layout_, shards_[shard].data(), &id}, 1)
              .ok());
  }
}

uint64_t MappedPages::Checksum(const std::byte* block) const {
  uint64_t joined = 0;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    uint64_t checksum = 0;
    ChecksumPagesOnHost(BlockOf(shard, block), 1, &checksum);
    joined = JoinShards(joined, checksum);
  }
  return joined;
}

}  // namespace pando
