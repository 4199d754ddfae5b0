#ifndef PANDO_MAPPED_POOL_H_
#define PANDO_MAPPED_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "pando/pool.h"

namespace pando {

class UniqueFd;

inline namespace client {

// The pool's memory, mapped into this process. A shard on a GPU is mapped at
// device addresses: for kernels, not for the CPU.
//
// Owned by the caller; move-only; the destructor unmaps it. It may outlive the
// Client, and stays mapped when pandod is gone. It belongs to one session: when
// that is lost, unmap it and attach again, even if the epoch stays.
//
// Threads synchronise as with any memory, under two rules that keep workers
// apart: write only to pages that your session has reserved, and read only
// pages that a match or an insert gave you. Each process must attach by itself:
// pandod cannot see which other processes write to GPU memory that was passed
// on.
class MappedPool {
 public:
  MappedPool(MappedPool&& other) noexcept = default;
  MappedPool& operator=(MappedPool&& other) noexcept = default;

  const PoolDescription& description() const { return pool_; }
  const KvLayout& layout() const { return pool_.layout; }
  // The epoch that this memory belongs to.
  uint64_t epoch() const { return epoch_; }

  // The memory of one shard; empty if it is not mapped. layout() says where
  // pages lie in it.
  std::span<std::byte> shard(uint32_t index) const { return shards_[index]; }

  // The address of the first element of one head of one token: KeyAddress in
  // plane 0, ValueAddress in plane 1. REQUIRES: each argument is within the
  // layout, and the shard is mapped; for ValueAddress, layout().kv_planes == 2.
  std::byte* KeyAddress(uint32_t layer, PageId page, uint32_t token,
                        uint32_t head, uint32_t shard = 0) const {
    return Address(layer, page, /*kv=*/0, token, head, shard);
  }
  std::byte* ValueAddress(uint32_t layer, PageId page, uint32_t token,
                          uint32_t head, uint32_t shard = 0) const {
    return Address(layer, page, /*kv=*/1, token, head, shard);
  }

 private:
  friend class Client;
  friend class MappedPoolTest;

  // Maps the shards of `pool` that are listed, or all if none is.
  // `descriptors` has one for each shard of the pool, in order. A shard for
  // which `wanted` has an address is mapped there.
  static absl::StatusOr<MappedPool> Map(
      PoolDescription pool, uint64_t epoch,
      const std::vector<UniqueFd>& descriptors,
      const std::vector<uint32_t>& shards,
      const std::vector<std::byte*>& wanted);

  MappedPool(PoolDescription pool, uint64_t epoch);

  std::byte* Address(uint32_t layer, PageId page, uint32_t kv, uint32_t token,
                     uint32_t head, uint32_t shard) const {
    return shards_[shard].data() +
           pool_.layout.Offset(layer, page, kv, token, head);
  }

  PoolDescription pool_;
  uint64_t epoch_ = 0;
  std::vector<std::span<std::byte>> shards_;
  // Destroying these unmaps the shards.
  std::vector<std::shared_ptr<const void>> owners_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_MAPPED_POOL_H_
