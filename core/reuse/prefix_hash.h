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
// be fast: its steps do not depend on each other, so the CPU overlaps them.
inline uint64_t HashOfPage(std::span<const Token> page) {
  constexpr uint64_t kFirst = 0xa076'1d64'78bd'642f;
  constexpr uint64_t kSecond = 0xe703'7ed1'a0b4'28db;
  const auto fold = [](uint64_t a, uint64_t b) {
    __extension__ using Product = unsigned __int128;
    const Product product = static_cast<Product>(a) * b;
    return static_cast<uint64_t>(product) ^
           static_cast<uint64_t>(product >> 64);
  };
  uint64_t sum = 0;
  uint64_t place = kFirst;
  size_t i = 0;
  for (; i + 4 <= page.size(); i += 4, place += kSecond) {
    uint64_t words[2];
    std::memcpy(words, &page[i], sizeof(words));
    sum += fold(words[0] ^ place, words[1] ^ kSecond);
  }
  for (; i < page.size(); ++i, place += kSecond) {
    sum += fold(page[i] ^ place, kSecond);
  }
  return sum;
}

// The hashes of the pages that begin at `first`, one after the other. It hashes
// `spelled_tokens` tokens for each page; in a bigram namespace they reach into
// the next page.
struct PageHashes {
  const Token* first;
  size_t page_tokens;
  size_t spelled_tokens;

  uint64_t operator[](size_t page) const {
    return HashOfPage({first + page * page_tokens, spelled_tokens});
  }
};

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

}  // namespace pando

#endif  // PANDO_CORE_REUSE_PREFIX_HASH_H_
