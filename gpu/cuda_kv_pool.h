#ifndef PANDO_GPU_CUDA_KV_POOL_H_
#define PANDO_GPU_CUDA_KV_POOL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "cuda/memory.h"
#include "gpu/kv_layout.h"
#include "gpu/kv_pool.h"

namespace pando {

// A pool in the memory of GPUs: one allocation for each shard, which workers
// map. This process maps a shard only while it fills it with zeros, and keeps
// no CUDA context unless it makes a checksummer. The device of a shard is
// "cuda:" and the UUID of its GPU.
class CudaKvPool final : public KvPool {
 public:
  // Shard i is on devices[i]: an ordinal of this process, or a UUID with or
  // without the prefix GPU- or MIG-. The memory is filled with zeros, as
  // engines assume of their own: if a slot that was never written contained a
  // NaN, it would reach the results of kernels that give the slot a weight of
  // zero. The zeros also keep workers from reading what was in the memory
  // before. RESOURCE_EXHAUSTED if a shard is larger than its device's memory.
  static absl::StatusOr<std::unique_ptr<CudaKvPool>> Create(
      const KvShape& shape, uint32_t capacity_pages,
      const std::vector<std::string>& devices);

  absl::StatusOr<UniqueFd> ExportShard(uint32_t index) const override;
  absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeChecksummer()
      const override;

 private:
  CudaKvPool(const KvLayout& layout, uint32_t capacity_pages,
             std::vector<KvShard> shards, std::vector<cuda::Memory> memories);

  const std::vector<cuda::Memory> memories_;
};

// Returns how many bytes each shard can have at most: the free memory of each
// device is divided among the shards on it, and the smallest share counts.
absl::StatusOr<uint64_t> FreeBytesPerShard(
    const std::vector<std::string>& devices);

// NOT_FOUND if a device does not exist; RESOURCE_EXHAUSTED if its whole memory,
// free or not, is smaller than a shard.
absl::Status CheckShardsFit(uint64_t shard_bytes,
                            const std::vector<std::string>& devices);

}  // namespace pando

#endif  // PANDO_GPU_CUDA_KV_POOL_H_
