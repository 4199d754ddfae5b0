// The plan of a copy of pages, which the CPU form and the kernel carry out.
#ifndef PANDO_GPU_PAGE_COPY_PLAN_H_
#define PANDO_GPU_PAGE_COPY_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "gpu/page_memory.h"
#include "gpu/page_tiles.h"

namespace pando {

// The source and the destination of one tile.
struct CopyTile {
  const std::byte* from;
  std::byte* to;
  uint32_t bytes;
};

struct PageCopyPlan {
  PagePieces from;
  PagePieces to;
  PageCut cut;
  uint32_t num_pages;

  // The number of tiles in one piece of all pages together.
  PANDO_HOST_DEVICE uint64_t num_tiles() const {
    return uint64_t{num_pages} * cut.tiles_per_piece;
  }
  PANDO_HOST_DEVICE CopyTile At(uint64_t tile, uint32_t piece) const {
    const auto nth = static_cast<uint32_t>(tile / cut.tiles_per_piece);
    const Tile part =
        TileOf(cut, static_cast<uint32_t>(tile % cut.tiles_per_piece));
    return {from.At(nth, piece) + part.offset, to.At(nth, piece) + part.offset,
            part.bytes};
  }
};

// INVALID_ARGUMENT if the pages differ in layers, planes or bytes.
absl::StatusOr<PageCopyPlan> PlanPageCopy(const PageMemory& from,
                                          const PageMemory& to,
                                          uint32_t num_pages);

}  // namespace pando

#endif  // PANDO_GPU_PAGE_COPY_PLAN_H_
