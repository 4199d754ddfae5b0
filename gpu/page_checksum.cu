#include <algorithm>
#include <cstdint>

#include "gpu/cuda_status.h"
#include "gpu/page_checksum.h"
#include "gpu/page_checksum_plan.h"

namespace pando {
namespace {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kThreads = 256;
constexpr uint32_t kWarps = kThreads / kLanes;
// The number of tiles, all of one page, that a thread block adds up: so many
// that the block's one atomic addition costs nothing beside them.
constexpr uint32_t kTilesPerBlock = 4 * kWarps;
constexpr uint32_t kMaxGridY = 65535;

// Returns the sum that one lane adds for a tile of whole words.
__device__ uint64_t SumAligned(const ChecksumTile& tile, uint32_t lane) {
  constexpr uint32_t kLoads = kTileBytes / kWordBytes / kLanes;
  const auto* const from = reinterpret_cast<const ulonglong2*>(tile.from);
  const uint32_t pairs = tile.bytes / kWordBytes;
  ulonglong2 loaded[kLoads];
#pragma unroll
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t pair = lane + i * kLanes;
    if (pair < pairs) loaded[i] = from[pair];
  }
  uint64_t sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < kLoads; ++i) {
    const uint32_t pair = lane + i * kLanes;
    if (pair >= pairs) continue;
    const uint64_t place = tile.first_place + 2 * pair;
    sum += MixWord(loaded[i].x, place) + MixWord(loaded[i].y, place + 1);
  }
  return sum;
}

__device__ uint64_t SumUnaligned(const ChecksumTile& tile, uint32_t lane) {
  uint64_t sum = 0;
  for (uint32_t offset = 8 * lane; offset < tile.bytes; offset += 8 * kLanes) {
    const uint32_t left = tile.bytes - offset;
    sum += MixWord(WordAt(tile.from + offset, left < 8 ? left : 8),
                   tile.first_place + offset / 8);
  }
  return sum;
}

__device__ uint64_t SumOfWarp(uint64_t sum) {
  for (uint32_t distance = kLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffff, static_cast<unsigned long long>(sum),
                           distance);
  }
  return sum;
}

// blockIdx.x is the page, blockIdx.y the part of the page that the thread block
// adds up.
template <bool kIsAligned>
__global__ void __launch_bounds__(kThreads)
    ChecksumKernel(PageChecksumPlan plan, unsigned long long* checksums) {
  const uint32_t lane = threadIdx.x % kLanes;
  const uint32_t warp = threadIdx.x / kLanes;
  const uint32_t begin = blockIdx.y * kTilesPerBlock;
  const uint32_t end = min(begin + kTilesPerBlock, plan.tiles_per_page());
  uint64_t sum = 0;
  for (uint32_t tile = begin + warp; tile < end; tile += kWarps) {
    const ChecksumTile part = plan.At(blockIdx.x, tile);
    sum += kIsAligned ? SumAligned(part, lane) : SumUnaligned(part, lane);
  }
  __shared__ uint64_t sums[kWarps];
  sum = SumOfWarp(sum);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = SumOfWarp(lane < kWarps ? sums[lane] : 0);
  if (lane == 0) atomicAdd(&checksums[blockIdx.x], sum);
}

}  // namespace

absl::Status ChecksumPages(const PageMemory& pages, uint32_t num_pages,
                           uint64_t* checksums, CudaStream stream) {
  if (num_pages == 0) return absl::OkStatus();
  const PageChecksumPlan plan = {.pages = PiecesOf(pages),
                                 .cut = CutOf(pages.layout)};
  const uint32_t parts =
      (plan.tiles_per_page() + kTilesPerBlock - 1) / kTilesPerBlock;
  if (num_pages > INT32_MAX || parts > kMaxGridY) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%u pages of %u bytes are too many for one checksum",
                        num_pages, PageBytes(pages.layout)));
  }
  absl::Status cleared = ToStatus(
      cudaMemsetAsync(checksums, 0, num_pages * sizeof(*checksums), stream),
      "cudaMemsetAsync");
  if (!cleared.ok()) return cleared;
  auto* const sums = reinterpret_cast<unsigned long long*>(checksums);
  const dim3 grid(num_pages, parts);
  if (IsWordAligned(plan.pages, plan.cut)) {
    ChecksumKernel<true><<<grid, kThreads, 0, stream>>>(plan, sums);
  } else {
    ChecksumKernel<false><<<grid, kThreads, 0, stream>>>(plan, sums);
  }
  return ToStatus(cudaGetLastError(), "launch of the page checksum");
}

}  // namespace pando
