#ifndef PANDO_TESTS_GPU_CUDA_DEVICE_H_
#define PANDO_TESTS_GPU_CUDA_DEVICE_H_

#include <string>

#include "cuda/device.h"

namespace pando {

// Returns why a test cannot use the first GPU; empty if it can.
inline std::string WhyNoDevice() {
  const absl::StatusOr<cuda::Device> device = cuda::FindDevice("0");
  return device.ok() ? "" : std::string(device.status().message());
}

}  // namespace pando

#endif  // PANDO_TESTS_GPU_CUDA_DEVICE_H_
