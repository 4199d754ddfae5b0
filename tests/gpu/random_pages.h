// Makes random shapes, memories full of random bytes, and lists of pages.
#ifndef PANDO_TESTS_GPU_RANDOM_PAGES_H_
#define PANDO_TESTS_GPU_RANDOM_PAGES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <random>
#include <vector>

#include "gpu/kv_layout.h"

namespace pando {

class RandomPages {
 public:
  explicit RandomPages(uint64_t seed) : random_(seed) {}

  uint32_t Between(uint32_t least, uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(least, most)(random_);
  }

  LayoutOrder Order() {
    return Between(0, 1) == 0 ? LayoutOrder::kLayerFirst
                              : LayoutOrder::kPageFirst;
  }

  // Returns a shape of MHA, GQA, MLA or opaque pages. Some sizes are whole
  // words, others are not.
  KvShape Shape() {
    const bool is_latent = Between(0, 3) == 0;
    const uint32_t head_sizes[] = {1, 3, 8, 24, 64, 80, 128};
    if (Between(0, 4) == 0) {
      return {.layers = Between(1, 5),
              .page_tokens = uint32_t{1} << Between(0, 5),
              .order = Order(),
              .opaque_bytes = Between(1, 5000)};
    }
    return {.layers = Between(1, 5),
            .kv_planes = is_latent ? 1u : 2u,
            .heads = is_latent ? 1 : Between(1, 9),
            .head_size = is_latent ? 576 : head_sizes[Between(0, 6)],
            .dtype = static_cast<DType>(Between(0, 4)),
            .page_tokens = uint32_t{1} << Between(0, 5),
            .order = Order()};
  }

  std::vector<std::byte> Bytes(uint64_t count) {
    std::vector<std::byte> bytes(count);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  // Returns distinct pages in any order: none, some or all.
  std::vector<uint32_t> Ids(uint32_t capacity) {
    std::vector<uint32_t> ids(capacity);
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random_);
    ids.resize(Between(0, capacity));
    return ids;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace pando

// The operator is in the namespace of Shape, so that argument-dependent lookup
// finds it.
namespace pando::kv {

inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.layers << " layers, " << shape.kv_planes << " planes, "
             << shape.heads << " heads of " << shape.head_size << " "
             << DTypeName(shape.dtype) << ", pages of " << shape.page_tokens
             << ", " << shape.opaque_bytes << " opaque bytes, "
             << LayoutOrderName(shape.order);
}

}  // namespace pando::kv

#endif  // PANDO_TESTS_GPU_RANDOM_PAGES_H_
