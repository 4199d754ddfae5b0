#ifndef PANDO_CLIENTS_CPP_SRC_SHARD_MAPPING_H_
#define PANDO_CLIENTS_CPP_SRC_SHARD_MAPPING_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "pando/pool.h"

namespace pando {
inline namespace client {

// The memory of one shard in this process; destroying the last copy of `owner`
// unmaps it.
struct ShardMapping {
  std::span<std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// Maps a shard in host memory or on a GPU, at the address `wanted`, or anywhere
// if that is null. Returns FAILED_PRECONDITION if the address is not free.
absl::StatusOr<ShardMapping> MapShard(const Shard& shard,
                                      const UniqueFd& descriptor,
                                      std::byte* wanted);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_SHARD_MAPPING_H_
