#ifndef PANDO_SERVICE_MEMORY_MAKE_POOL_H_
#define PANDO_SERVICE_MEMORY_MAKE_POOL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/host_memory.h"
#include "gpu/kv_pool.h"
#include "os/keeping/kept_descriptors.h"
#include "service/options/options.h"

namespace pando {

// Check that this process may use the memory that such a pool, or such a block
// memory, needs at the start. They do not ask GPUs for memory.
absl::Status CheckPoolFits(const Options& options);
absl::Status CheckBlockMemoryFits(const Options& options);
// Checks that each GPU of an open pool exists, and that its memory, free or
// not, is enough for a shard. Other pools are not checked.
absl::Status CheckGpus(const Options& options);

// Makes the pool that the options ask for. Sets options.pool_pages if they ask
// for a fraction of the free memory. A pool in host memory uses the memory that
// is kept of an earlier pandod, if it fits; but not if `kept` is null, nor if
// there is a mover socket, because a pando-mover may still write for that
// pandod.
absl::StatusOr<std::unique_ptr<KvPool>> MakePool(Options& options,
                                                 KeptDescriptors* kept);
// Whether the memory of such a pool outlives this process.
bool IsPoolKept(const Options& options, const KeptDescriptors& kept);

// Makes the block memory in the same way; returns null if the options ask for
// none. Sets options.memory if they leave the size open: to the size of the
// kept memory, or else to a share of the free memory.
absl::StatusOr<std::unique_ptr<HostMemory>> MakeBlockMemory(
    Options& options, KeptDescriptors& kept);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_MAKE_POOL_H_
