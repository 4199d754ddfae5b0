#include "gpu/host_page_checksummer.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "gpu/page_checksum.h"

namespace pando {

absl::StatusOr<std::unique_ptr<HostPageChecksummer>>
HostPageChecksummer::Create(const KvPool& pool) {
  auto checksummer = absl::WrapUnique(new HostPageChecksummer(pool.layout()));
  for (const KvShard& shard : pool.shards()) {
    ASSIGN_OR_RETURN(const UniqueFd fd, pool.ExportShard(shard.index));
    void* const base =
        mmap(nullptr, shard.size_bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (base == MAP_FAILED) {
      return absl::ErrnoToStatus(errno, "cannot map a shard to verify it");
    }
    checksummer->shards_.emplace_back(static_cast<std::byte*>(base),
                                      shard.size_bytes);
  }
  return checksummer;
}

HostPageChecksummer::~HostPageChecksummer() {
  for (const std::span<std::byte> shard : shards_) {
    munmap(shard.data(), shard.size());
  }
}

absl::StatusOr<std::vector<uint64_t>> HostPageChecksummer::Checksum(
    std::span<const uint32_t> pages) {
  std::vector<uint64_t> joined(pages.size());
  std::vector<uint64_t> of_shard(pages.size());
  for (const std::span<std::byte> shard : shards_) {
    ChecksumPagesOnHost({layout_, shard.data(), pages.data()},
                        static_cast<uint32_t>(pages.size()), of_shard.data());
    for (size_t i = 0; i < pages.size(); ++i) {
      joined[i] = JoinShards(joined[i], of_shard[i]);
    }
  }
  return joined;
}

}  // namespace pando
