#include "bench/gpu/attach_times.h"

#include <chrono>
#include <cstdio>

#include "cuda/memory.h"
#include "gpu/cuda_kv_pool.h"

namespace pando {
namespace {

// Tells the milliseconds since it was last asked.
class Watch {
 public:
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> lap = now - begin_;
    begin_ = now;
    return lap.count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();
};

}  // namespace

void PrintAttachTimes(uint64_t pool_bytes) {
  const KvShape shape = {.layers = 32,
                         .kv_planes = 2,
                         .heads = 8,
                         .head_size = 128,
                         .dtype = DType::kBFloat16,
                         .page_tokens = 16,
                         .order = LayoutOrder::kLayerFirst};
  const uint64_t page_bytes = PageBytes(MakeKvLayout(shape, 2).value());
  const auto pages = static_cast<uint32_t>(pool_bytes / page_bytes);
  const cuda::Device device = cuda::FindDevice("0").value();
  Watch watch;
  const auto pool = CudaKvPool::Create(shape, pages, {"0"}).value();
  const double made = watch.Lap();
  const UniqueFd descriptor = pool->ExportShard(0).value();
  const double exported = watch.Lap();
  const uint64_t size = pool->shards()[0].size_bytes;
  const cuda::Memory memory =
      cuda::Memory::Import(device, descriptor.get(), size).value();
  const double imported = watch.Lap();
  const cuda::Mapping mapping = cuda::Mapping::Map(memory).value();
  const double mapped = watch.Lap();
  std::printf(
      "a pool of %.1f GB: made in %.2f ms, exported in %.2f, imported in %.2f, "
      "mapped in %.2f\n",
      static_cast<double>(size) / 1e9, made, exported, imported, mapped);
}

}  // namespace pando
