#ifndef PANDO_CORE_REUSE_PREFIX_HASH_H_
#define PANDO_CORE_REUSE_PREFIX_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/ids.h"
#include "core/nodes/segment.h"

namespace pando {

// The hash of a page's tokens: the products of its neighbouring words, each
// mixed with its place. It is made for every page that is inserted, so it is
// short; none of its steps waits for the one before.
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

// The hashes of the pages that begin at `first`, one after the other.
// `spelled_tokens` of a page are hashed, which reach into the next one in a
// bigram namespace.
struct PageHashes {
  const Token* first;
  size_t page_tokens;
  size_t spelled_tokens;

  uint64_t operator[](size_t page) const {
    return HashOfPage({first + page * page_tokens, spelled_tokens});
  }
};

// The print of a prefix is made of that of its pages but the last, and of the
// hash of the last. Prints are short, because one is kept for each page that is
// cached or remembered: two prefixes of one print are taken for one.
inline PagePrint NextPrint(PagePrint before, uint64_t page_hash) {
  constexpr uint64_t kFactor = 0x9e37'79b9'7f4a'7c15;
  const uint64_t mixed = (before * kFactor + page_hash) * kFactor;
  const auto print = static_cast<PagePrint>(mixed >> 32);
  return print == 0 ? 1 : print;
}

}  // namespace pando

#endif  // PANDO_CORE_REUSE_PREFIX_HASH_H_
