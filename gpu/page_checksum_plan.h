// The checksum of a page, as the CPU form and the kernel compute it: each
// 8-byte word is mixed with its place in the page, and the results are summed
// up modulo 2^64. The order of the summands does not matter, so warps may add
// theirs in any order.
#ifndef PANDO_GPU_PAGE_CHECKSUM_PLAN_H_
#define PANDO_GPU_PAGE_CHECKSUM_PLAN_H_

#include <cstdint>

#include "gpu/page_memory.h"
#include "gpu/page_tiles.h"

namespace pando {

// Mixes a word with its place. At the same place, different words give
// different results.
PANDO_HOST_DEVICE inline uint64_t MixWord(uint64_t word, uint64_t place) {
  uint64_t x = word + (place + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 32);
}

// The word with these `count` bytes; missing bytes at the end of a piece count
// as zeros.
PANDO_HOST_DEVICE inline uint64_t WordAt(const std::byte* bytes,
                                         uint32_t count) {
  uint64_t word = 0;
  for (uint32_t i = 0; i < count; ++i) {
    word |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  }
  return word;
}

// A part of a page, and the place of its first word in the page.
struct ChecksumTile {
  const std::byte* from;
  uint32_t bytes;
  uint64_t first_place;
};

struct PageChecksumPlan {
  PagePieces pages;
  PageCut cut;

  PANDO_HOST_DEVICE uint32_t tiles_per_page() const {
    return cut.pieces * cut.tiles_per_piece;
  }
  PANDO_HOST_DEVICE ChecksumTile At(uint32_t nth, uint32_t tile) const {
    const uint32_t piece = tile / cut.tiles_per_piece;
    const Tile part = TileOf(cut, tile % cut.tiles_per_piece);
    const uint64_t words_per_piece = (cut.piece_bytes + 7) / 8;
    return {pages.At(nth, piece) + part.offset, part.bytes,
            piece * words_per_piece + part.offset / 8};
  }
};

}  // namespace pando

#endif  // PANDO_GPU_PAGE_CHECKSUM_PLAN_H_
