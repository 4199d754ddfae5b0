// Access to a device's memory for tests: through the CUDA runtime if there is a
// GPU, through the CPU if the driver is the stand-in.
#ifndef PANDO_TESTS_GPU_DEVICE_ACCESS_H_
#define PANDO_TESTS_GPU_DEVICE_ACCESS_H_

#include <cstddef>
#include <string>

namespace pando {

void CopyToDevice(std::byte* device, const char* host, size_t size);
void CopyFromDevice(char* host, const std::byte* device, size_t size);

// Returns why no kernel can run here; empty if one can.
std::string WhyNoKernels();

}  // namespace pando

#endif  // PANDO_TESTS_GPU_DEVICE_ACCESS_H_
