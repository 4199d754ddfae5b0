#include "gpu/host_kv_pool.h"

#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "gpu/host_page_checksummer.h"

namespace pando {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

uint64_t ShardBytes(const KvLayout& layout, uint32_t capacity_pages) {
  return RoundUp(PoolBytes(layout, capacity_pages),
                 static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

}  // namespace

// This check is needed because the system would grant any size now and kill the
// writers later.
absl::Status HostKvPool::CheckFits(const KvLayout& layout,
                                   uint32_t capacity_pages,
                                   uint32_t num_shards) {
  const uint64_t shard_bytes = ShardBytes(layout, capacity_pages);
  struct sysinfo info;
  if (sysinfo(&info) != 0) return absl::ErrnoToStatus(errno, "sysinfo");
  const uint64_t memory = uint64_t{info.totalram} * info.mem_unit;
  if (absl::uint128(shard_bytes) * num_shards <= memory) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the pool needs %u shards of %u bytes; this machine has %u bytes of "
      "memory",
      num_shards, shard_bytes, memory));
}

absl::StatusOr<std::unique_ptr<HostKvPool>> HostKvPool::Create(
    const KvShape& shape, uint32_t capacity_pages, uint32_t num_shards) {
  return CreateIn(shape, capacity_pages, num_shards,
                  [](uint32_t, uint64_t bytes) {
                    return HostMemory::Create("a shard of the pool", bytes);
                  });
}

absl::StatusOr<std::unique_ptr<HostKvPool>> HostKvPool::CreateIn(
    const KvShape& shape, uint32_t capacity_pages, uint32_t num_shards,
    const MakeShard& make) {
  if (num_shards < 1 || num_shards > kMaxShards) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "shards is %u; must be from 1 to %u", num_shards, kMaxShards));
  }
  ASSIGN_OR_RETURN(KvLayout layout, MakeKvLayout(shape, capacity_pages));
  RETURN_IF_ERROR(CheckFits(layout, capacity_pages, num_shards));
  const uint64_t shard_bytes = ShardBytes(layout, capacity_pages);

  std::vector<KvShard> shards;
  std::vector<HostMemory> memory;
  for (uint32_t index = 0; index < num_shards; ++index) {
    ASSIGN_OR_RETURN(HostMemory shard, make(index, shard_bytes));
    shards.push_back({index, "host", shard_bytes});
    memory.push_back(std::move(shard));
  }
  return absl::WrapUnique(new HostKvPool(layout, capacity_pages,
                                         std::move(shards), std::move(memory)));
}

HostKvPool::HostKvPool(const KvLayout& layout, uint32_t capacity_pages,
                       std::vector<KvShard> shards,
                       std::vector<HostMemory> memory)
    : KvPool(layout, capacity_pages, std::move(shards)),
      memory_(std::move(memory)) {}

absl::StatusOr<UniqueFd> HostKvPool::ExportShard(uint32_t index) const {
  RETURN_IF_ERROR(CheckShard(index));
  return memory_[index].Export();
}

absl::StatusOr<UniqueFd> HostKvPool::ExportShardTo(WriterId writer,
                                                   uint32_t index) const {
  RETURN_IF_ERROR(CheckShard(index));
  return memory_[index].ExportTo(writer);
}

absl::Status HostKvPool::CheckShard(uint32_t index) const {
  if (index < memory_.size()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrFormat(
      "shard is %u; the pool has %u shards", index, memory_.size()));
}

std::optional<bool> HostKvPool::IsHeldBy(WriterId writer) const {
  return std::any_of(
      memory_.begin(), memory_.end(),
      [writer](const HostMemory& shard) { return shard.IsHeldBy(writer); });
}

uint64_t HostKvPool::memory_id() const {
  uint64_t id = 0;
  for (const HostMemory& shard : memory_) {
    id = (id ^ shard.id()) * 1'099'511'628'211 + 1;
  }
  return id;
}

absl::StatusOr<WriterId> HostKvPool::LastWriter() const {
  WriterId last(0);
  for (const HostMemory& shard : memory_) {
    ASSIGN_OR_RETURN(const WriterId writer, shard.LastWriter());
    if (writer.value() > last.value()) last = writer;
  }
  return last;
}

bool HostKvPool::IsHeldByAnyUpTo(WriterId last) const {
  return std::any_of(
      memory_.begin(), memory_.end(),
      [last](const HostMemory& shard) { return shard.IsHeldByAnyUpTo(last); });
}

absl::StatusOr<std::unique_ptr<PageChecksummer>> HostKvPool::MakeChecksummer()
    const {
  return HostPageChecksummer::Create(*this);
}

}  // namespace pando
