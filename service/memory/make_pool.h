#ifndef PANDO_SERVICE_MEMORY_MAKE_POOL_H_
#define PANDO_SERVICE_MEMORY_MAKE_POOL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "gpu/kv_pool.h"
#include "service/options/options.h"

namespace pando {

// The pool that the options ask for. Sets options.pool_pages where they ask for
// a fraction of the memory that is free.
absl::StatusOr<std::unique_ptr<KvPool>> MakePool(Options& options);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_MAKE_POOL_H_
