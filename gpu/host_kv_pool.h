#ifndef PANDO_GPU_HOST_KV_POOL_H_
#define PANDO_GPU_HOST_KV_POOL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "gpu/host_memory.h"
#include "gpu/kv_layout.h"
#include "gpu/kv_pool.h"

namespace pando {

// A pool in shared host memory, one HostMemory for each shard.
class HostKvPool final : public KvPool {
 public:
  // RESOURCE_EXHAUSTED if the pool would be larger than this machine's memory.
  static absl::Status CheckFits(const KvLayout& layout, uint32_t capacity_pages,
                                uint32_t num_shards);
  // INVALID_ARGUMENT unless there are 1 to kMaxShards shards. Also fails as
  // MakeKvLayout and CheckFits do.
  static absl::StatusOr<std::unique_ptr<HostKvPool>> Create(
      const KvShape& shape, uint32_t capacity_pages, uint32_t num_shards);
  // The same, but `make` provides the memory of each shard.
  using MakeShard =
      std::function<absl::StatusOr<HostMemory>(uint32_t shard, uint64_t bytes)>;
  static absl::StatusOr<std::unique_ptr<HostKvPool>> CreateIn(
      const KvShape& shape, uint32_t capacity_pages, uint32_t num_shards,
      const MakeShard& make);

  absl::StatusOr<UniqueFd> ExportShard(uint32_t index) const override;
  absl::StatusOr<UniqueFd> ExportShardTo(WriterId writer,
                                         uint32_t index) const override;
  std::optional<bool> IsHeldBy(WriterId writer) const override;
  uint64_t memory_id() const override;
  absl::StatusOr<WriterId> LastWriter() const override;
  bool IsHeldByAnyUpTo(WriterId last) const override;
  absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeChecksummer()
      const override;

 private:
  HostKvPool(const KvLayout& layout, uint32_t capacity_pages,
             std::vector<KvShard> shards, std::vector<HostMemory> memory);

  absl::Status CheckShard(uint32_t index) const;

  const std::vector<HostMemory> memory_;
};

}  // namespace pando

#endif  // PANDO_GPU_HOST_KV_POOL_H_
