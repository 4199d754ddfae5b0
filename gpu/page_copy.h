#ifndef PANDO_GPU_PAGE_COPY_H_
#define PANDO_GPU_PAGE_COPY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "gpu/page_memory.h"

namespace pando {

// Copies the first num_pages pages of `from` to those of `to`: out of a pool
// into a buffer (gather), back (scatter), or between pools, whatever the layout
// orders. InvalidArgument: their pages are not alike. REQUIRES: the memories do
// not overlap, and `to` has no page twice.
absl::Status CopyPagesOnHost(const PageMemory& from, const PageMemory& to,
                             uint32_t num_pages);

// The same on the current device: one kernel on `stream`, which may be in
// capture. Errors of the kernel itself come from later calls, as always in
// CUDA. Only in builds with the CUDA toolkit.
absl::Status CopyPages(const PageMemory& from, const PageMemory& to,
                       uint32_t num_pages, CudaStream stream);

}  // namespace pando

#endif  // PANDO_GPU_PAGE_COPY_H_
