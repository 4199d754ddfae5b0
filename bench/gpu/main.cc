// Measures copies and checksums of pages on the first GPU, and attaching to a
// pool on it. Where there is no GPU it says so and succeeds.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/gpu/attach_times.h"
#include "bench/gpu/device_buffer.h"
#include "bench/gpu/page_rates.h"
#include "cuda/device.h"

namespace pando {
namespace {

// bfloat16, 16 tokens a page, 32 layers.
KvShape Shape(uint32_t heads, LayoutOrder order) {
  return {.layers = 32,
          .kv_planes = 2,
          .heads = heads,
          .head_size = 128,
          .dtype = DType::kBFloat16,
          .page_tokens = 16,
          .order = order};
}

void PrintDevice() {
  cudaDeviceProp device;
  int driver = 0;
  Check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  Check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  std::printf("%s, a driver for CUDA %d.%d, built with CUDA %d.%d\n",
              device.name, driver / 1000, driver % 1000 / 10,
              CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

int Main() {
  const absl::StatusOr<cuda::Device> device = cuda::FindDevice("0");
  if (!device.ok()) {
    std::printf("skipped: %s\n",
                std::string(device.status().message()).c_str());
    return 0;
  }
  PrintDevice();
  for (LayoutOrder order :
       {LayoutOrder::kLayerFirst, LayoutOrder::kPageFirst}) {
    PrintPageRates(Shape(/*heads=*/1, order), 1024);
    PrintPageRates(Shape(/*heads=*/8, order), 256);
  }
  const uint64_t free = cuda::FreeBytes(*device).value();
  for (uint64_t gigabytes : {4, 40}) {
    PrintAttachTimes(std::min(gigabytes * 1'000'000'000, free / 2));
  }
  return 0;
}

}  // namespace
}  // namespace pando

int main() { return pando::Main(); }
