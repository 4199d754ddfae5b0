#ifndef PANDO_GPU_CUDA_PAGE_CHECKSUMMER_H_
#define PANDO_GPU_CUDA_PAGE_CHECKSUMMER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/memory.h"
#include "gpu/kv_layout.h"
#include "gpu/page_checksummer.h"

namespace pando {

// Makes the checksummer of a pool with these shards. It maps them, so this
// process then has a CUDA context on each device.
absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeCudaPageChecksummer(
    const KvLayout& layout, const std::vector<cuda::Memory>& shards);

}  // namespace pando

#endif  // PANDO_GPU_CUDA_PAGE_CHECKSUMMER_H_
