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

// Fail when this process may not use the memory that such a pool needs at the
// start, or such a block memory. The memory of GPUs is not asked.
absl::Status CheckPoolFits(const Options& options);
absl::Status CheckBlockMemoryFits(const Options& options);
// Fails when an open pool asks for GPUs that are not there, or have less
// memory, be it free or not.
absl::Status CheckGpus(const Options& options);

// Makes the pool that the options ask for. Sets options.pool_pages where they
// ask for a fraction of the free memory. A pool in host memory is in the memory
// that is kept of a pandod before, if that fits. Without `kept`, and where a
// pando-mover may still write for that pandod, it is not.
absl::StatusOr<std::unique_ptr<KvPool>> MakePool(Options& options,
                                                 KeptDescriptors* kept);

// Makes the block memory, in the same way; null where the options ask for none.
// Sets options.memory where they leave its size open: to that of what is kept.
absl::StatusOr<std::unique_ptr<HostMemory>> MakeBlockMemory(
    Options& options, KeptDescriptors& kept);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_MAKE_POOL_H_
