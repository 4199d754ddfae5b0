// A copy of pages as its CPU form and its kernel carry it out.
#ifndef PANDO_GPU_PAGE_COPY_PLAN_H_
#define PANDO_GPU_PAGE_COPY_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "gpu/page_memory.h"
#include "gpu/page_tiles.h"

namespace pando {

// Where one tile is copied from and to.
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

  // The number of tiles for each piece.
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

absl::StatusOr<PageCopyPlan> PlanPageCopy(const PageMemory& from,
                                          const PageMemory& to,
                                          uint32_t num_pages);

}  // namespace pando

#endif  // PANDO_GPU_PAGE_COPY_PLAN_H_
