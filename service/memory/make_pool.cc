#include "service/memory/make_pool.h"

#include <cstdint>

#include "base/status_macros.h"
#include "gpu/cuda_kv_pool.h"
#include "gpu/host_kv_pool.h"
#include "service/logging/log.h"
#include "service/options/option_checks.h"

namespace pando {
namespace {

absl::Status SizePool(Options& options) {
  if (options.pool_fraction == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t free,
                   FreeBytesPerShard(options.pool_devices));
  return SetPoolPages(
      "pool-fraction in bytes",
      static_cast<uint64_t>(static_cast<double>(free) * options.pool_fraction),
      options);
}

absl::StatusOr<std::unique_ptr<KvPool>> MakeCudaPool(Options& options) {
  absl::Status sized = SizePool(options);
  if (!sized.ok()) return sized;
  ASSIGN_OR_RETURN(std::unique_ptr<CudaKvPool> pool,
                   CudaKvPool::Create(ShapeOf(options), options.pool_pages,
                                      options.pool_devices, options.pool_zero));
  for (const KvShard& shard : pool->shards()) {
    const uint64_t used = PoolBytes(pool->layout(), options.pool_pages);
    Log(LogLevel::kInfo, "shard made",
        {{"shard", shard.index},
         {"device", shard.device},
         {"bytes", shard.size_bytes},
         {"unused_by_rounding", shard.size_bytes - used}});
  }
  return pool;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KvPool>> MakePool(Options& options) {
  if (options.pool_memory == "cuda") return MakeCudaPool(options);
  return HostKvPool::Create(ShapeOf(options), options.pool_pages,
                            options.pool_shards);
}

}  // namespace pando
