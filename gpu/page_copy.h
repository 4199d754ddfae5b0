#ifndef PANDO_GPU_PAGE_COPY_H_
#define PANDO_GPU_PAGE_COPY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gpu/page_memory.h"

namespace pando {

// Copies the first num_pages pages of `from` to those of `to`: from a pool into
// a buffer (gather), back (scatter), or between pools, whatever their layout
// orders. INVALID_ARGUMENT if their pages differ in layers, planes or bytes.
// REQUIRES: the memories do not overlap, and `to` names no page twice.
absl::Status CopyPagesOnHost(const PageMemory& from, const PageMemory& to,
                             uint32_t num_pages);

// The same on the current CUDA device: enqueues one kernel on `stream`, which
// may be capturing a graph. As always in CUDA, errors of the kernel itself are
// reported by later calls. Only in builds with the CUDA toolkit.
absl::Status CopyPages(const PageMemory& from, const PageMemory& to,
                       uint32_t num_pages, CudaStream stream);

}  // namespace pando

#endif  // PANDO_GPU_PAGE_COPY_H_
