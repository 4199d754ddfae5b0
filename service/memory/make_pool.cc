#include "service/memory/make_pool.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "gpu/cuda_kv_pool.h"
#include "gpu/host_kv_pool.h"
#include "gpu/numa_nodes.h"
#include "os/logging/log.h"
#include "os/memory_limit.h"
#include "service/memory/kept_memory.h"
#include "service/options/option_checks.h"

namespace pando {
namespace {

// The bytes that PagePool keeps for each page.
constexpr uint64_t kIndexBytesPerPage = 12;

// Blocks get one part in so many of the free memory if no option says how much.
// The rest is for engines, weights that they load, and the system.
constexpr uint64_t kFreeMemoryParts = 4;

// Checks that the index of all pages, which is made at the start, fits in
// memory. The kernel kills a process without a word if it uses memory that was
// granted but is not there.
absl::Status CheckIndexFitsInMemory(const Options& options) {
  ASSIGN_OR_RETURN(const uint64_t memory, MemoryLimit());
  const uint64_t needed = options.pool_pages * kIndexBytesPerPage;
  if (needed <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the pool has %u pages, whose index alone needs %u bytes; this process "
      "may use %u bytes of memory",
      options.pool_pages, needed, memory));
}

absl::Status ChooseMemory(Options& options, uint64_t kept_bytes) {
  // Kept memory is in use, so the free memory does not include it.
  if (kept_bytes > 0 && kept_bytes % options.block_extent == 0) {
    options.memory = kept_bytes;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const uint64_t free, FreeMemory());
  const uint64_t extents = free / kFreeMemoryParts / options.block_extent;
  if (extents == 0) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "a quarter of the free memory, %u bytes, is less than block-extent, "
        "which is %u; give memory, or a smaller block-extent",
        free, options.block_extent));
  }
  options.memory = extents * options.block_extent;
  Log(LogLevel::kInfo,
      "blocks have a quarter of the free memory; --memory sets another size",
      {{"bytes", options.memory}, {"free_bytes", free}});
  return absl::OkStatus();
}

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
  RETURN_IF_ERROR(SizePool(options));
  RETURN_IF_ERROR(CheckIndexFitsInMemory(options));
  ASSIGN_OR_RETURN(std::unique_ptr<CudaKvPool> pool,
                   CudaKvPool::Create(ShapeOf(options), options.pool_pages,
                                      options.pool_devices));
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

absl::Status CheckPoolFits(const Options& options) {
  // If the pool gets a share of a GPU, the number of its pages is not known
  // yet.
  if (options.pool_fraction > 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckIndexFitsInMemory(options));
  if (options.pool_memory == "cuda") return absl::OkStatus();
  ASSIGN_OR_RETURN(const KvLayout layout,
                   MakeKvLayout(ShapeOf(options), options.pool_pages));
  return HostKvPool::CheckFits(layout, options.pool_pages, options.pool_shards);
}

absl::Status CheckGpus(const Options& options) {
  if (options.pool_memory != "cuda") return absl::OkStatus();
  return CheckShardsFit(options.pool_bytes, options.pool_devices);
}

absl::StatusOr<std::unique_ptr<KvPool>> MakePool(Options& options,
                                                 KeptDescriptors* kept) {
  if (options.pool_memory == "cuda") return MakeCudaPool(options);
  RETURN_IF_ERROR(CheckIndexFitsInMemory(options));
  if (kept == nullptr || !options.mover_socket.empty()) {
    return HostKvPool::Create(ShapeOf(options), options.pool_pages,
                              options.pool_shards);
  }
  return HostKvPool::CreateIn(
      ShapeOf(options), options.pool_pages, options.pool_shards,
      [kept](uint32_t shard, uint64_t bytes) {
        return KeptMemory(*kept, absl::StrCat("pool-", shard),
                          "a shard of the pool", bytes);
      });
}

bool IsPoolKept(const Options& options, const KeptDescriptors& kept) {
  return kept.has_keeper() && options.has_pool &&
         options.pool_memory != "cuda" && options.mover_socket.empty();
}

absl::Status CheckBlockMemoryFits(const Options& options) {
  ASSIGN_OR_RETURN(const uint64_t memory, MemoryLimit());
  if (options.memory <= memory) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrFormat("memory is %u bytes; this process may use %u bytes",
                      options.memory, memory));
}

namespace {

// A policy that Linux refuses is an error only if an option asks for it.
absl::Status PlaceBlocks(const Options& options, const HostMemory& memory) {
  if (!options.memory_nodes.empty()) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> nodes,
                     UsableNodesOf(options.memory_nodes));
    return PlaceOnNodes(memory.fd(), memory.bytes(), nodes);
  }
  const absl::StatusOr<std::vector<uint32_t>> nodes = UsableNodes();
  if (!nodes.ok() || nodes->size() < 2) return absl::OkStatus();
  const absl::Status status = PlaceOnNodes(memory.fd(), memory.bytes(), *nodes);
  if (!status.ok()) {
    Log(LogLevel::kWarning,
        "the block memory is not spread over the NUMA nodes",
        {{"reason", status.message()}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostMemory>> MakeBlockMemory(
    Options& options, KeptDescriptors& kept) {
  constexpr char kBlocks[] = "blocks";
  if (options.chooses_memory) {
    RETURN_IF_ERROR(ChooseMemory(options, kept.BytesOf(kBlocks)));
    RETURN_IF_ERROR(CheckBlockQuotas(options));
  }
  if (options.memory == 0) return nullptr;
  RETURN_IF_ERROR(CheckBlockMemoryFits(options));
  ASSIGN_OR_RETURN(
      HostMemory made,
      KeptMemory(kept, kBlocks, "the block memory", options.memory));
  RETURN_IF_ERROR(PlaceBlocks(options, made));
  return std::make_unique<HostMemory>(std::move(made));
}

}  // namespace pando
