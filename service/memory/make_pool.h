#ifndef PANDO_SERVICE_MEMORY_MAKE_POOL_H_
#define PANDO_SERVICE_MEMORY_MAKE_POOL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/host_memory.h"
#include "gpu/kv_pool.h"
#include "service/options/options.h"

namespace pando {

// Fails when this machine has not the memory that such a pool needs at the
// start. What is on GPUs is not asked.
absl::Status CheckPoolFits(const Options& options);

// Makes the pool that the options ask for. Sets options.pool_pages where they
// ask for a fraction of the free memory.
absl::StatusOr<std::unique_ptr<KvPool>> MakePool(Options& options);

// Makes the block memory; null where the options ask for none.
absl::StatusOr<std::unique_ptr<HostMemory>> MakeBlockMemory(
    const Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_MAKE_POOL_H_
