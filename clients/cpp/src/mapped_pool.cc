#include "pando/mapped_pool.h"

#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "clients/cpp/src/shard_mapping.h"

namespace pando {
inline namespace client {
namespace {

std::vector<uint32_t> AllOf(const PoolDescription& pool) {
  std::vector<uint32_t> all(pool.shards.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

MappedPool::MappedPool(PoolDescription pool, uint64_t epoch)
    : pool_(std::move(pool)), epoch_(epoch) {}

absl::StatusOr<MappedPool> MappedPool::Map(
    PoolDescription pool, uint64_t epoch,
    const std::vector<UniqueFd>& descriptors,
    const std::vector<uint32_t>& shards,
    const std::vector<std::byte*>& wanted) {
  if (descriptors.size() != pool.shards.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(descriptors.size(), " descriptors for a pool of ",
                     pool.shards.size(), " shards"));
  }
  MappedPool mapped(std::move(pool), epoch);
  mapped.shards_.resize(descriptors.size());
  for (const uint32_t i : shards.empty() ? AllOf(mapped.pool_) : shards) {
    if (i >= descriptors.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("shards has ", i, "; the pool has ", descriptors.size(),
                       " shards, which are counted from 0"));
    }
    absl::StatusOr<ShardMapping> shard =
        MapShard(mapped.pool_.shards[i], descriptors[i],
                 i < wanted.size() ? wanted[i] : nullptr);
    if (!shard.ok()) {
      return absl::Status(
          shard.status().code(),
          absl::StrCat("shard ", i, ": ", shard.status().message()));
    }
    mapped.shards_[i] = shard->bytes;
    mapped.owners_.push_back(std::move(shard->owner));
  }
  return mapped;
}

}  // namespace client
}  // namespace pando
