#ifndef PANDO_GPU_PAGE_CHECKSUM_H_
#define PANDO_GPU_PAGE_CHECKSUM_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gpu/page_memory.h"

namespace pando {

// Computes a 64-bit checksum of each of the first num_pages pages: the same in
// every layout order, on CPU and GPU. A change within one aligned 8-byte word
// of a page always changes the checksum. It does not protect against an
// attacker.
void ChecksumPagesOnHost(const PageMemory& pages, uint32_t num_pages,
                         uint64_t* checksums);

// The same on the current CUDA device: enqueues a memset and a kernel on
// `stream`, which may be capturing a graph. `checksums` is device memory. Only
// in builds with the CUDA toolkit.
absl::Status ChecksumPages(const PageMemory& pages, uint32_t num_pages,
                           uint64_t* checksums, CudaStream stream);

}  // namespace pando

#endif  // PANDO_GPU_PAGE_CHECKSUM_H_
