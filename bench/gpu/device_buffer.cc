#include "bench/gpu/device_buffer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace pando {
namespace {

constexpr int kRounds = 7;
constexpr int kRepeats = 10;

}  // namespace

void Check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(error));
  std::exit(EXIT_FAILURE);
}

Buffer::Buffer(Place place, uint64_t bytes) : place_(place) {
  if (place == Place::kDevice) {
    Check(cudaMalloc(&data_, bytes), "cudaMalloc");
    Check(cudaMemset(data_, 1, bytes), "cudaMemset");
  } else {
    Check(cudaMallocHost(&data_, bytes), "cudaMallocHost");
  }
}

Buffer::~Buffer() {
  place_ == Place::kDevice ? cudaFree(data_) : cudaFreeHost(data_);
}

double SecondsOf(cudaStream_t stream, const std::function<void()>& work) {
  cudaEvent_t begin;
  cudaEvent_t end;
  Check(cudaEventCreate(&begin), "cudaEventCreate");
  Check(cudaEventCreate(&end), "cudaEventCreate");
  work();  // the first is slower
  float shortest = std::numeric_limits<float>::max();
  for (int round = 0; round < kRounds; ++round) {
    Check(cudaEventRecord(begin, stream), "cudaEventRecord");
    for (int i = 0; i < kRepeats; ++i) work();
    Check(cudaEventRecord(end, stream), "cudaEventRecord");
    Check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    Check(cudaEventElapsedTime(&milliseconds, begin, end),
          "cudaEventElapsedTime");
    shortest = std::min(shortest, milliseconds);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return shortest / 1e3 / kRepeats;
}

}  // namespace pando
