// Only in builds with the CUDA toolkit.
#ifndef PANDO_GPU_CUDA_STATUS_H_
#define PANDO_GPU_CUDA_STATUS_H_

#include <cuda_runtime_api.h>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace pando {

// Converts a CUDA error to a status: RESOURCE_EXHAUSTED for too little memory,
// else INTERNAL. The message has the current device, the call and CUDA's
// description.
inline absl::Status ToStatus(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return absl::OkStatus();
  int device = -1;
  cudaGetDevice(&device);
  return absl::Status(
      error == cudaErrorMemoryAllocation ? absl::StatusCode::kResourceExhausted
                                         : absl::StatusCode::kInternal,
      absl::StrFormat("GPU %d: %s: %s (%s)", device, call,
                      cudaGetErrorString(error), cudaGetErrorName(error)));
}

}  // namespace pando

#endif  // PANDO_GPU_CUDA_STATUS_H_
