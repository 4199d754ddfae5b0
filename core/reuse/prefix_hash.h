#ifndef PANDO_CORE_REUSE_PREFIX_HASH_H_
#define PANDO_CORE_REUSE_PREFIX_HASH_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/ids.h"

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

// The hash of a prefix, which is that of a shorter one and of its last page. It
// can be taken back page by page, so that what is trimmed off a run costs no
// look at what stays.
inline constexpr uint64_t kPrefixFactor = 0x9e37'79b9'7f4a'7c15;

inline uint64_t AppendPageHash(uint64_t prefix, uint64_t page) {
  return prefix * kPrefixFactor + page;
}

// The inverse of an odd number modulo 2^64, by Newton's method.
constexpr uint64_t InverseOf(uint64_t odd) {
  uint64_t inverse = odd;  // right in its last three bits
  for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

inline uint64_t RemovePageHash(uint64_t prefix, uint64_t page) {
  constexpr uint64_t kInverse = InverseOf(kPrefixFactor);
  static_assert(kPrefixFactor * kInverse == 1);
  return (prefix - page) * kInverse;
}

}  // namespace pando

#endif  // PANDO_CORE_REUSE_PREFIX_HASH_H_
