#include "gpu/page_staging.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "gpu/cuda_status.h"
#include "gpu/page_copy.h"

namespace pando {
namespace {

PageMemory PagesFrom(const PageMemory& pages, uint32_t begin) {
  PageMemory rest = pages;
  if (pages.ids != nullptr) {
    rest.ids += begin;
  } else {
    rest.base += begin * pages.layout.page_stride;
  }
  return rest;
}

absl::Status Record(cudaEvent_t event, cudaStream_t stream) {
  return ToStatus(cudaEventRecord(event, stream), "cudaEventRecord");
}

absl::Status Wait(cudaStream_t stream, cudaEvent_t event) {
  return ToStatus(cudaStreamWaitEvent(stream, event), "cudaStreamWaitEvent");
}

// Makes all later work on stream `after` wait for the work that is on stream
// `before` now.
absl::Status Order(cudaStream_t before, cudaEvent_t event, cudaStream_t after) {
  absl::Status status = Record(event, before);
  return status.ok() ? Wait(after, event) : status;
}

absl::Status MakeEvent(cudaEvent_t& event) {
  return ToStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                  "cudaEventCreateWithFlags");
}

}  // namespace

absl::StatusOr<std::unique_ptr<PageStaging>> PageStaging::Create(
    const KvLayout& layout, uint32_t chunk_pages) {
  if (chunk_pages == 0) {
    return absl::InvalidArgumentError("chunk_pages is 0; must be at least 1");
  }
  auto staging = absl::WrapUnique(new PageStaging(layout, chunk_pages));
  RETURN_IF_ERROR(staging->Allocate());
  return staging;
}

absl::Status PageStaging::Allocate() {
  RETURN_IF_ERROR(
      ToStatus(cudaStreamCreateWithFlags(&bus_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags"));
  RETURN_IF_ERROR(MakeEvent(joined_));
  for (Slot& slot : slots_) {
    RETURN_IF_ERROR(ToStatus(cudaMalloc(reinterpret_cast<void**>(&slot.buffer),
                                        BytesOf(chunk_pages_)),
                             "cudaMalloc of a staging buffer"));
    RETURN_IF_ERROR(MakeEvent(slot.filled));
    RETURN_IF_ERROR(MakeEvent(slot.drained));
  }
  return absl::OkStatus();
}

PageStaging::~PageStaging() {
  for (const Slot& slot : slots_) {
    if (slot.drained != nullptr) cudaEventDestroy(slot.drained);
    if (slot.filled != nullptr) cudaEventDestroy(slot.filled);
    cudaFree(slot.buffer);
  }
  if (joined_ != nullptr) cudaEventDestroy(joined_);
  if (bus_ != nullptr) cudaStreamDestroy(bus_);
}

absl::Status PageStaging::ForEachChunk(uint32_t num_pages, CudaStream filler,
                                       Step fill, CudaStream drainer,
                                       Step drain) {
  uint32_t chunks = 0;
  for (uint32_t begin = 0; begin < num_pages; begin += chunk_pages_) {
    const Chunk chunk = {begin, std::min(chunk_pages_, num_pages - begin)};
    const Slot& slot = slots_[chunks % slots_.size()];
    if (chunks++ >= slots_.size()) {
      RETURN_IF_ERROR(Wait(filler, slot.drained));
    }
    RETURN_IF_ERROR(fill(slot, chunk));
    RETURN_IF_ERROR(Order(filler, slot.filled, drainer));
    RETURN_IF_ERROR(drain(slot, chunk));
    RETURN_IF_ERROR(Record(slot.drained, drainer));
  }
  return absl::OkStatus();
}

absl::Status PageStaging::ToHost(const PageMemory& pool, uint32_t num_pages,
                                 std::byte* host, CudaStream stream) {
  if (num_pages == 0) return absl::OkStatus();
  const auto gather = [&](const Slot& slot, const Chunk& chunk) {
    return CopyPages(PagesFrom(pool, chunk.begin),
                     PageBuffer(layout_, slot.buffer), chunk.count, stream);
  };
  const auto send = [&](const Slot& slot, const Chunk& chunk) {
    return ToStatus(
        cudaMemcpyAsync(host + BytesOf(chunk.begin), slot.buffer,
                        BytesOf(chunk.count), cudaMemcpyDeviceToHost, bus_),
        "cudaMemcpyAsync to the host");
  };
  absl::Status status = ForEachChunk(num_pages, stream, gather, bus_, send);
  return status.ok() ? Order(bus_, joined_, stream) : status;
}

absl::Status PageStaging::ToDevice(const std::byte* host,
                                   const PageMemory& pool, uint32_t num_pages,
                                   CudaStream stream) {
  if (num_pages == 0) return absl::OkStatus();
  const auto fetch = [&](const Slot& slot, const Chunk& chunk) {
    return ToStatus(
        cudaMemcpyAsync(slot.buffer, host + BytesOf(chunk.begin),
                        BytesOf(chunk.count), cudaMemcpyHostToDevice, bus_),
        "cudaMemcpyAsync to the device");
  };
  const auto scatter = [&](const Slot& slot, const Chunk& chunk) {
    return CopyPages(PageBuffer(layout_, slot.buffer),
                     PagesFrom(pool, chunk.begin), chunk.count, stream);
  };
  absl::Status status = Order(stream, joined_, bus_);
  return status.ok() ? ForEachChunk(num_pages, bus_, fetch, stream, scatter)
                     : status;
}

}  // namespace pando
