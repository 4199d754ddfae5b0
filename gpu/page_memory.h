#ifndef PANDO_GPU_PAGE_MEMORY_H_
#define PANDO_GPU_PAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "gpu/kv_layout.h"

// The same type as cudaStream_t of the CUDA runtime.
struct CUstream_st;

namespace pando {

using CudaStream = CUstream_st*;

// Pages of a pool's shard, or of a buffer. The code that reads or writes the
// pages must be able to use the addresses `base` and `ids`: a kernel needs
// device memory or pinned host memory, the CPU host memory.
struct PageMemory {
  KvLayout layout;
  std::byte* base = nullptr;
  // The n-th page is page ids[n] of the layout, or page n if this is null.
  // REQUIRES: each is within the pool.
  const uint32_t* ids = nullptr;
};

// A buffer of whole pages in the shape of `layout`, one after the other.
PageMemory PageBuffer(const KvLayout& layout, std::byte* base);

}  // namespace pando

#endif  // PANDO_GPU_PAGE_MEMORY_H_
