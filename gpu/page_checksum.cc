#include "gpu/page_checksum.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "gpu/page_checksum_plan.h"

namespace pando {
namespace {

static_assert(std::endian::native == std::endian::little);

// This is always inlined, so that it is compiled for the instruction set of
// each caller.
[[gnu::always_inline]] inline uint64_t SumInline(const ChecksumTile& tile) {
  uint64_t sum = 0;
  uint64_t place = tile.first_place;
  uint32_t offset = 0;
  for (; offset + 8 <= tile.bytes; offset += 8) {
    uint64_t word;
    std::memcpy(&word, tile.from + offset, sizeof(word));
    sum += MixWord(word, place++);
  }
  if (offset < tile.bytes) {
    sum += MixWord(WordAt(tile.from + offset, tile.bytes - offset), place);
  }
  return sum;
}

#ifdef __x86_64__
// The form for CPUs that multiply eight words at once, which takes less than
// half the time.
[[gnu::target("avx512f,avx512dq")]] uint64_t SumWide(const ChecksumTile& tile) {
  return SumInline(tile);
}
#endif

uint64_t Sum(const ChecksumTile& tile) {
#ifdef __x86_64__
  static const bool is_wide = __builtin_cpu_supports("avx512f") != 0 &&
                              __builtin_cpu_supports("avx512dq") != 0;
  if (is_wide) return SumWide(tile);
#endif
  return SumInline(tile);
}

}  // namespace

void ChecksumPagesOnHost(const PageMemory& pages, uint32_t num_pages,
                         uint64_t* checksums) {
  const PageChecksumPlan plan = {.pages = PiecesOf(pages),
                                 .cut = CutOf(pages.layout)};
  for (uint32_t nth = 0; nth < num_pages; ++nth) {
    uint64_t sum = 0;
    for (uint32_t tile = 0; tile < plan.tiles_per_page(); ++tile) {
      sum += Sum(plan.At(nth, tile));
    }
    checksums[nth] = sum;
  }
}

}  // namespace pando
