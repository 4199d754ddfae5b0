// How a test reaches a device's memory: by the CUDA runtime where there is a
// GPU, by the CPU where the driver is the stand-in.
#ifndef PANDO_TESTS_GPU_DEVICE_ACCESS_H_
#define PANDO_TESTS_GPU_DEVICE_ACCESS_H_

#include <cstddef>
#include <string>

namespace pando {

void CopyToDevice(std::byte* device, const char* host, size_t size);
void CopyFromDevice(char* host, const std::byte* device, size_t size);

// Why no kernel can run here; empty: one can.
std::string WhyNoKernels();

}  // namespace pando

#endif  // PANDO_TESTS_GPU_DEVICE_ACCESS_H_
