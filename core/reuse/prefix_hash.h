#ifndef PANDO_CORE_REUSE_PREFIX_HASH_H_
#define PANDO_CORE_REUSE_PREFIX_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/ids.h"
#include "core/nodes/segment.h"

namespace pando {

// The hash of a page's tokens: the sum of products of neighbouring words, each
// mixed with its position. It is computed for every inserted page, so it must
// be fast: its steps do not depend on each other, so the CPU overlaps them, and
// the compiler unrolls them where it knows the number of tokens.
template <size_t kTokens = std::dynamic_extent>
uint64_t HashOfPage(std::span<const Token, kTokens> page) {
  constexpr uint64_t kFirst = 0xa076'1d64'78bd'642f;
  constexpr uint64_t kSecond = 0xe703'7ed1'a0b4'28db;
  __extension__ using Product = unsigned __int128;
  Product sum = 0;
  uint64_t place = kFirst;
  uint64_t factor = kSecond;
  const auto advance = [&] {
    place += kSecond;
    factor += kFirst;
  };
  const size_t in_fours = page.size() / 4 * 4;
  for (size_t i = 0; i < in_fours; i += 4, advance()) {
    uint64_t words[2];
    std::memcpy(words, page.data() + i, sizeof(words));
    sum += Product{words[0] ^ place} * (words[1] ^ factor);
  }
  for (size_t i = in_fours; i < page.size(); ++i, advance()) {
    sum += Product{page[i] ^ place} * factor;
  }
  return static_cast<uint64_t>(sum) ^ static_cast<uint64_t>(sum >> 64);
}

// Returns the print of a prefix, given the print of the prefix without its last
// page, and the hash of the last page. Prints are short, because one is kept
// for each page that is cached or a ghost. Two prefixes with the same print are
// mistaken for one. A print is never 0.
inline PagePrint NextPrint(PagePrint before, uint64_t page_hash) {
  constexpr uint64_t kFactor = 0x9e37'79b9'7f4a'7c15;
  const uint64_t mixed = (before * kFactor + page_hash) * kFactor;
  const auto print = static_cast<PagePrint>(mixed >> 32);
  return print == 0 ? 1 : print;
}

// Fills `prints` with the prints of the pages that begin at `first`, one after
// the other; `before` is the print of the page before them. It hashes
// `spelled_tokens` tokens for each page, which is kTokens unless that is
// dynamic; in a bigram namespace they reach into the next page.
template <size_t kTokens>
void FillPrints(PagePrint before, const Token* first, size_t page_tokens,
                size_t spelled_tokens, std::span<PagePrint> prints) {
  for (PagePrint& print : prints) {
    const std::span<const Token, kTokens> page(first, spelled_tokens);
    print = before = NextPrint(before, HashOfPage(page));
    first += page_tokens;
  }
}

}  // namespace pando

#endif  // PANDO_CORE_REUSE_PREFIX_HASH_H_
