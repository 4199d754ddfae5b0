#ifndef PANDO_TESTS_TIERS_HASHES_H_
#define PANDO_TESTS_TIERS_HASHES_H_

#include <cstddef>
#include <cstring>
#include <vector>

#include "core/nodes/page_hash.h"

namespace pando {

// Returns a different hash for each number.
inline PageHash HashOf(size_t number) {
  PageHash hash = {};
  std::memcpy(hash.data(), &number, sizeof(number));
  return hash;
}

inline std::vector<PageHash> Hashes(size_t first, size_t count) {
  std::vector<PageHash> hashes;
  for (size_t i = 0; i < count; ++i) hashes.push_back(HashOf(first + i));
  return hashes;
}

}  // namespace pando

#endif  // PANDO_TESTS_TIERS_HASHES_H_
