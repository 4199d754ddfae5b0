#ifndef PANDO_SERVICE_MEMORY_MAKE_POOL_H_
#define PANDO_SERVICE_MEMORY_MAKE_POOL_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/host_memory.h"
#include "gpu/kv_pool.h"
#include "service/options/options.h"

namespace pando {

// Fail when this process may not use the memory that such a pool needs at the
// start, or such a block memory. The memory of GPUs is not asked.
absl::Status CheckPoolFits(const Options& options);
absl::Status CheckBlockMemoryFits(const Options& options);

// Makes the pool that the options ask for. Sets options.pool_pages where they
// ask for a fraction of the free memory.
absl::StatusOr<std::unique_ptr<KvPool>> MakePool(Options& options);

// Makes the block memory; null where the options ask for none. Sets
// options.memory where they leave its size open.
absl::StatusOr<std::unique_ptr<HostMemory>> MakeBlockMemory(Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_MAKE_POOL_H_
