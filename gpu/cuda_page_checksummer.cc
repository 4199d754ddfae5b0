#include "gpu/cuda_page_checksummer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/status_macros.h"
#include "gpu/cuda_status.h"
#include "gpu/page_checksum.h"

namespace pando {
namespace {

// How many pages one launch takes.
constexpr size_t kBatchPages = 1024;

// One shard on its device, with a batch of page ids and checksums.
class ShardChecksummer {
 public:
  ShardChecksummer(const KvLayout& layout, const cuda::Mapping& mapping,
                   int device)
      : pages_{.layout = layout, .base = mapping.bytes().data()},
        mapping_(mapping),
        device_(device) {}
  ShardChecksummer(const ShardChecksummer&) = delete;
  ShardChecksummer& operator=(const ShardChecksummer&) = delete;
  ~ShardChecksummer() {
    cudaFreeHost(ids_);
    cudaFree(checksums_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  absl::Status Allocate() {
    RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_), "cudaSetDevice"));
    RETURN_IF_ERROR(
        ToStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                 "cudaStreamCreateWithFlags"));
    RETURN_IF_ERROR(ToStatus(cudaMallocHost(reinterpret_cast<void**>(&ids_),
                                            kBatchPages * sizeof(*ids_)),
                             "cudaMallocHost"));
    return ToStatus(cudaMalloc(reinterpret_cast<void**>(&checksums_),
                               kBatchPages * sizeof(*checksums_)),
                    "cudaMalloc");
  }

  // REQUIRES: at most kBatchPages.
  absl::Status Checksum(std::span<const uint32_t> pages, uint64_t* checksums) {
    RETURN_IF_ERROR(ToStatus(cudaSetDevice(device_), "cudaSetDevice"));
    std::copy(pages.begin(), pages.end(), ids_);
    PageMemory batch = pages_;
    batch.ids = ids_;
    RETURN_IF_ERROR(ChecksumPages(batch, static_cast<uint32_t>(pages.size()),
                                  checksums_, stream_));
    RETURN_IF_ERROR(ToStatus(cudaMemcpyAsync(checksums, checksums_,
                                             pages.size() * sizeof(*checksums),
                                             cudaMemcpyDeviceToHost, stream_),
                             "cudaMemcpyAsync"));
    return ToStatus(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  const PageMemory pages_;
  const cuda::Mapping mapping_;
  const int device_;
  cudaStream_t stream_ = nullptr;
  uint32_t* ids_ = nullptr;        // pinned: the kernel reads it here
  uint64_t* checksums_ = nullptr;  // on the device
};

class CudaPageChecksummer final : public PageChecksummer {
 public:
  explicit CudaPageChecksummer(
      std::vector<std::unique_ptr<ShardChecksummer>> shards)
      : shards_(std::move(shards)) {}

  absl::StatusOr<std::vector<uint64_t>> Checksum(
      std::span<const uint32_t> pages) override {
    std::vector<uint64_t> joined(pages.size());
    std::vector<uint64_t> of_shard(kBatchPages);
    for (const auto& shard : shards_) {
      for (size_t begin = 0; begin < pages.size(); begin += kBatchPages) {
        const std::span<const uint32_t> batch =
            pages.subspan(begin, std::min(kBatchPages, pages.size() - begin));
        RETURN_IF_ERROR(shard->Checksum(batch, of_shard.data()));
        for (size_t i = 0; i < batch.size(); ++i) {
          joined[begin + i] = JoinShards(joined[begin + i], of_shard[i]);
        }
      }
    }
    return joined;
  }

 private:
  const std::vector<std::unique_ptr<ShardChecksummer>> shards_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PageChecksummer>> MakeCudaPageChecksummer(
    const KvLayout& layout, const std::vector<cuda::Memory>& shards) {
  std::vector<std::unique_ptr<ShardChecksummer>> made;
  for (const cuda::Memory& shard : shards) {
    ASSIGN_OR_RETURN(const cuda::Mapping mapping, cuda::Mapping::Map(shard));
    made.push_back(std::make_unique<ShardChecksummer>(layout, mapping,
                                                      shard.device().ordinal));
    RETURN_IF_ERROR(made.back()->Allocate());
  }
  return std::make_unique<CudaPageChecksummer>(std::move(made));
}

}  // namespace pando
