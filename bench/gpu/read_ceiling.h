#ifndef PANDO_BENCH_GPU_READ_CEILING_H_
#define PANDO_BENCH_GPU_READ_CEILING_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace pando {

// Reads all of the memory with as little else as can be; `sum` is 4 bytes of
// device memory. REQUIRES: 16-byte alignment.
void ReadAll(const std::byte* memory, uint64_t bytes, uint32_t* sum,
             cudaStream_t stream);

}  // namespace pando

#endif  // PANDO_BENCH_GPU_READ_CEILING_H_
