#ifndef PANDO_GPU_PAGE_MEMORY_H_
#define PANDO_GPU_PAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "gpu/kv_layout.h"

// What the CUDA runtime calls cudaStream_t.
struct CUstream_st;

namespace pando {

using CudaStream = CUstream_st*;

// Pages in memory: of a pool's shard, or of a buffer. Who reads or writes them
// must be able to reach `base` and `ids`: a kernel device memory or pinned host
// memory, the CPU host memory.
struct PageMemory {
  KvLayout layout;
  std::byte* base = nullptr;
  // The n-th page is page ids[n] of the layout, or page n where this is null.
  // REQUIRES: within the pool.
  const uint32_t* ids = nullptr;
};

// Whole pages like those of `layout`, one after the other.
PageMemory PageBuffer(const KvLayout& layout, std::byte* base);

}  // namespace pando

#endif  // PANDO_GPU_PAGE_MEMORY_H_
