#include "gpu/cuda_kv_pool.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "cuda/device.h"
#include "gpu/cuda_page_checksummer.h"

namespace pando {
namespace {

// Reports too little memory in terms of the pool, where the driver would only
// say "out of memory".
absl::Status CheckFitsDevice(const cuda::Device& device, uint64_t bytes) {
  ASSIGN_OR_RETURN(const uint64_t total, cuda::TotalBytes(device));
  if (bytes <= total) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("a shard needs %u bytes; %s has %u bytes of memory",
                      bytes, cuda::ToString(device), total));
}

absl::StatusOr<cuda::Memory> AllocateShard(const std::string& device_name,
                                           uint64_t bytes) {
  ASSIGN_OR_RETURN(const cuda::Device device, cuda::FindDevice(device_name));
  RETURN_IF_ERROR(CheckFitsDevice(device, bytes));
  ASSIGN_OR_RETURN(cuda::Memory memory, cuda::Memory::Allocate(device, bytes));
  ASSIGN_OR_RETURN(const cuda::Mapping mapping, cuda::Mapping::Map(memory));
  RETURN_IF_ERROR(mapping.Zero());
  return memory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaKvPool>> CudaKvPool::Create(
    const KvShape& shape, uint32_t capacity_pages,
    const std::vector<std::string>& devices) {
  if (devices.empty() || devices.size() > kMaxShards) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "shards is %u; must be from 1 to %u", devices.size(), kMaxShards));
  }
  ASSIGN_OR_RETURN(const KvLayout layout, MakeKvLayout(shape, capacity_pages));

  std::vector<KvShard> shards;
  std::vector<cuda::Memory> memories;
  for (const std::string& device : devices) {
    ASSIGN_OR_RETURN(cuda::Memory memory,
                     AllocateShard(device, PoolBytes(layout, capacity_pages)));
    shards.push_back({.index = static_cast<uint32_t>(shards.size()),
                      .device = absl::StrCat("cuda:", memory.device().uuid),
                      .size_bytes = memory.size_bytes()});
    memories.push_back(std::move(memory));
  }
  return absl::WrapUnique(new CudaKvPool(
      layout, capacity_pages, std::move(shards), std::move(memories)));
}

CudaKvPool::CudaKvPool(const KvLayout& layout, uint32_t capacity_pages,
                       std::vector<KvShard> shards,
                       std::vector<cuda::Memory> memories)
    : KvPool(layout, capacity_pages, std::move(shards)),
      memories_(std::move(memories)) {}

absl::StatusOr<UniqueFd> CudaKvPool::ExportShard(uint32_t index) const {
  if (index >= memories_.size()) {
    return absl::OutOfRangeError(absl::StrFormat(
        "shard is %u; the pool has %u shards", index, memories_.size()));
  }
  ASSIGN_OR_RETURN(const int descriptor, memories_[index].Export());
  return UniqueFd(descriptor);
}

absl::StatusOr<std::unique_ptr<PageChecksummer>> CudaKvPool::MakeChecksummer()
    const {
  return MakeCudaPageChecksummer(layout(), memories_);
}

absl::Status CheckShardsFit(uint64_t shard_bytes,
                            const std::vector<std::string>& devices) {
  for (const std::string& name : devices) {
    ASSIGN_OR_RETURN(const cuda::Device device, cuda::FindDevice(name));
    RETURN_IF_ERROR(CheckFitsDevice(device, shard_bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FreeBytesPerShard(
    const std::vector<std::string>& devices) {
  // The keys are UUIDs, because one device may be named in two ways.
  std::map<std::string, uint64_t> shards_on;
  std::map<std::string, uint64_t> free_on;
  for (const std::string& name : devices) {
    ASSIGN_OR_RETURN(const cuda::Device device, cuda::FindDevice(name));
    if (++shards_on[device.uuid] > 1) continue;
    ASSIGN_OR_RETURN(const uint64_t free, cuda::FreeBytes(device));
    free_on[device.uuid] = free;
  }
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (const auto& [uuid, free] : free_on) {
    least = std::min(least, free / shards_on[uuid]);
  }
  return least;
}

}  // namespace pando
