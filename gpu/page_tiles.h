// How copies and checksums of pages are divided into pieces of work. Kernels
// and their CPU forms use the same arithmetic.
//
// A page is one piece for each layer and plane, contiguous in either layout
// order. A piece is cut into tiles, each the work of one warp.
#ifndef PANDO_GPU_PAGE_TILES_H_
#define PANDO_GPU_PAGE_TILES_H_

#include <cstddef>
#include <cstdint>

#include "gpu/page_memory.h"

#ifdef __CUDACC__
#define PANDO_HOST_DEVICE __host__ __device__
#else
#define PANDO_HOST_DEVICE
#endif

namespace pando {

// The bytes that one thread of a warp reads or writes at once, if everything is
// aligned to so many bytes.
inline constexpr uint32_t kWordBytes = 16;
// A tile has four words for each thread of a warp.
inline constexpr uint32_t kTileBytes = 4 * 32 * kWordBytes;

// How the pages of a copy or a checksum are cut into pieces and tiles.
struct PageCut {
  uint64_t piece_bytes = 0;
  uint32_t pieces = 0;
  uint32_t tiles_per_piece = 0;
};

inline PageCut CutOf(const KvLayout& layout) {
  return {.piece_bytes = layout.piece_bytes,
          .pieces = layout.layers * layout.kv_planes,
          .tiles_per_piece = static_cast<uint32_t>(
              (layout.piece_bytes + kTileBytes - 1) / kTileBytes)};
}

// Where the pieces of a PageMemory are.
struct PagePieces {
  std::byte* base = nullptr;
  const uint32_t* ids = nullptr;
  uint64_t page_stride = 0;
  uint64_t layer_stride = 0;
  uint64_t kv_stride = 0;
  uint32_t kv_planes = 0;

  // The address of a piece of the nth page. Pieces are numbered by layer, then
  // by plane.
  PANDO_HOST_DEVICE std::byte* At(uint32_t nth, uint32_t piece) const {
    const uint64_t page = ids == nullptr ? nth : ids[nth];
    return base + page * page_stride + piece / kv_planes * layer_stride +
           piece % kv_planes * kv_stride;
  }
};

inline PagePieces PiecesOf(const PageMemory& memory) {
  return {.base = memory.base,
          .ids = memory.ids,
          .page_stride = memory.layout.page_stride,
          .layer_stride = memory.layout.layer_stride,
          .kv_stride = memory.layout.kv_stride,
          .kv_planes = memory.layout.kv_planes};
}

// Whether every piece begins and ends at a word.
inline bool IsWordAligned(const PagePieces& pieces, const PageCut& cut) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(pieces.base) |
                        pieces.page_stride | pieces.layer_stride |
                        pieces.kv_stride | cut.piece_bytes;
  return bits % kWordBytes == 0;
}

// A part of a piece: `bytes` bytes from `offset` on.
struct Tile {
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

PANDO_HOST_DEVICE inline Tile TileOf(const PageCut& cut, uint32_t index) {
  const uint64_t offset = uint64_t{index} * kTileBytes;
  const uint64_t left = cut.piece_bytes - offset;
  return {offset, left < kTileBytes ? static_cast<uint32_t>(left) : kTileBytes};
}

}  // namespace pando

#endif  // PANDO_GPU_PAGE_TILES_H_
