#ifndef PANDO_BENCH_GPU_DEVICE_BUFFER_H_
#define PANDO_BENCH_GPU_DEVICE_BUFFER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace pando {

// Ends the process with the call and CUDA's words if it failed.
void Check(cudaError_t error, const char* call);

// Device memory, or pinned host memory.
class Buffer {
 public:
  enum class Place { kDevice, kHost };

  Buffer(Place place, uint64_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  const Place place_;
  void* data_ = nullptr;
};

// Seconds that the device takes for one `work`, which adds to the stream: the
// shortest mean of some rounds.
double SecondsOf(cudaStream_t stream, const std::function<void()>& work);

}  // namespace pando

#endif  // PANDO_BENCH_GPU_DEVICE_BUFFER_H_
