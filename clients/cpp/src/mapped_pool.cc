#include "pando/mapped_pool.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "clients/cpp/src/shard_mapping.h"

namespace pando {
inline namespace client {

MappedPool::MappedPool(PoolDescription pool, uint64_t epoch)
    : pool_(std::move(pool)), epoch_(epoch) {}

absl::StatusOr<MappedPool> MappedPool::Map(
    PoolDescription pool, uint64_t epoch,
    const std::vector<UniqueFd>& descriptors,
    const std::vector<std::byte*>& wanted) {
  if (descriptors.size() != pool.shards.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(descriptors.size(), " descriptors for a pool of ",
                     pool.shards.size(), " shards"));
  }
  MappedPool mapped(std::move(pool), epoch);
  for (size_t i = 0; i < descriptors.size(); ++i) {
    absl::StatusOr<ShardMapping> shard =
        MapShard(mapped.pool_.shards[i], descriptors[i],
                 i < wanted.size() ? wanted[i] : nullptr);
    if (!shard.ok()) {
      return absl::Status(
          shard.status().code(),
          absl::StrCat("shard ", i, ": ", shard.status().message()));
    }
    mapped.shards_.push_back(shard->bytes);
    mapped.owners_.push_back(std::move(shard->owner));
  }
  return mapped;
}

}  // namespace client
}  // namespace pando
