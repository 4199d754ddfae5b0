#include <cstdint>

#include "gpu/cuda_status.h"
#include "gpu/page_copy.h"
#include "gpu/page_copy_plan.h"

namespace pando {
namespace {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / kLanes;
// The number of loads that a lane begins before its first store.
constexpr uint32_t kInFlight = 4;

template <typename Word>
__device__ void CopyTileByWarp(const CopyTile& tile, uint32_t lane) {
  const auto* const from = reinterpret_cast<const Word*>(tile.from);
  auto* const to = reinterpret_cast<Word*>(tile.to);
  const uint32_t words = tile.bytes / sizeof(Word);
  for (uint32_t begin = lane; begin < words; begin += kInFlight * kLanes) {
    Word loaded[kInFlight];
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i) {
      if (begin + i * kLanes < words) loaded[i] = from[begin + i * kLanes];
    }
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i) {
      if (begin + i * kLanes < words) to[begin + i * kLanes] = loaded[i];
    }
  }
}

// Each warp copies one tile; blockIdx.y is the piece.
template <typename Word>
__global__ void __launch_bounds__(kThreads) CopyKernel(PageCopyPlan plan) {
  const uint64_t tile = uint64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (tile >= plan.num_tiles()) return;
  CopyTileByWarp<Word>(plan.At(tile, blockIdx.y), threadIdx.x % kLanes);
}

}  // namespace

absl::Status CopyPages(const PageMemory& from, const PageMemory& to,
                       uint32_t num_pages, CudaStream stream) {
  const absl::StatusOr<PageCopyPlan> plan = PlanPageCopy(from, to, num_pages);
  if (!plan.ok() || num_pages == 0) return plan.status();
  const uint64_t blocks = (plan->num_tiles() + kWarps - 1) / kWarps;
  if (blocks > INT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%u pages of %u bytes are too many for one copy",
                        num_pages, PageBytes(from.layout)));
  }
  const dim3 grid(static_cast<uint32_t>(blocks), plan->cut.pieces);
  if (IsWordAligned(plan->from, plan->cut) &&
      IsWordAligned(plan->to, plan->cut)) {
    CopyKernel<uint4><<<grid, kThreads, 0, stream>>>(*plan);
  } else {
    CopyKernel<uint8_t><<<grid, kThreads, 0, stream>>>(*plan);
  }
  return ToStatus(cudaGetLastError(), "launch of the page copy");
}

}  // namespace pando
