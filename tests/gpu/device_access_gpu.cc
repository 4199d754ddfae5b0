#include <cuda_runtime_api.h>

#include "gtest/gtest.h"
#include "tests/gpu/device_access.h"

namespace pando {

void CopyToDevice(std::byte* device, const char* host, size_t size) {
  EXPECT_EQ(cudaMemcpy(device, host, size, cudaMemcpyDefault), cudaSuccess);
}

void CopyFromDevice(char* host, const std::byte* device, size_t size) {
  EXPECT_EQ(cudaMemcpy(host, device, size, cudaMemcpyDefault), cudaSuccess);
}

std::string WhyNoKernels() { return ""; }

}  // namespace pando
