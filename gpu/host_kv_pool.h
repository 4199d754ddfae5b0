#ifndef PANDO_GPU_HOST_KV_POOL_H_
#define PANDO_GPU_HOST_KV_POOL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "gpu/kv_layout.h"
#include "gpu/kv_pool.h"

namespace pando {

// A pool in shared host memory: one memfd for each shard, sealed so that no
// holder can change its size and make the others fault. The memory is not
// touched here: the kernel provides a page when a worker first writes to it.
//
// Each writer gets an open file description of its own, with a lock on the byte
// whose offset is the writer's number. The lock lives as long as the open file
// description: until the last descriptor and the last mapping of it are gone,
// in whichever process. So IsHeldBy needs only to test the lock.
class HostKvPool final : public KvPool {
 public:
  // Fails when this machine has not the memory for such a pool.
  static absl::Status CheckFits(const KvLayout& layout, uint32_t capacity_pages,
                                uint32_t num_shards);
  static absl::StatusOr<std::unique_ptr<HostKvPool>> Create(
      const KvShape& shape, uint32_t capacity_pages, uint32_t num_shards);

  absl::StatusOr<UniqueFd> ExportShard(uint32_t index) const override;
  absl::StatusOr<UniqueFd> ExportShardTo(WriterId writer,
                                         uint32_t index) const override;
  std::optional<bool> IsHeldBy(WriterId writer) const override;
  absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeChecksummer()
      const override;

 private:
  HostKvPool(const KvLayout& layout, uint32_t capacity_pages,
             std::vector<KvShard> shards, std::vector<UniqueFd> fds);

  absl::StatusOr<UniqueFd> ReopenedShard(uint32_t index) const;

  const std::vector<UniqueFd> fds_;
};

}  // namespace pando

#endif  // PANDO_GPU_HOST_KV_POOL_H_
