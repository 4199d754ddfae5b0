// Only builds with the CUDA toolkit include this file.
#ifndef PANDO_TESTS_GPU_DEVICE_MEMORY_H_
#define PANDO_TESTS_GPU_DEVICE_MEMORY_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <vector>

#include "gtest/gtest.h"

namespace pando {

// An array in the memory of the current device.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    EXPECT_EQ(cudaMalloc(&data_, size * sizeof(T)), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(T),
                         cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() { return data_; }

  // Waits for the device, and returns the values.
  std::vector<T> values() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(T),
                         cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  const size_t size_;
  T* data_ = nullptr;
};

// Pinned host memory.
class PinnedBytes {
 public:
  explicit PinnedBytes(size_t size) {
    EXPECT_EQ(cudaMallocHost(&data_, size), cudaSuccess);
  }
  PinnedBytes(const PinnedBytes&) = delete;
  PinnedBytes& operator=(const PinnedBytes&) = delete;
  ~PinnedBytes() { cudaFreeHost(data_); }

  std::byte* data() { return data_; }

 private:
  std::byte* data_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_TESTS_GPU_DEVICE_MEMORY_H_
