// Reads and writes pages one element at a time: slowly, and by nothing but the
// meaning of the strides.
#ifndef PANDO_TESTS_GPU_PAGE_MODEL_H_
#define PANDO_TESTS_GPU_PAGE_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gpu/kv_layout.h"

namespace pando {

// Calls visit(offset) for the first byte of each element of a page, ordered by
// layer, plane, token, head, element.
template <typename Visit>
void ForEachElement(const KvLayout& l, uint64_t page, const Visit& visit) {
  for (uint64_t layer = 0; layer < l.layers; ++layer) {
    const uint64_t place = layer * l.layer_stride + page * l.page_stride;
    for (uint64_t i = 0; i < l.opaque_bytes; ++i) visit(place + i);
    for (uint64_t kv = 0; kv < l.kv_planes; ++kv)
      for (uint64_t token = 0; token < l.page_tokens; ++token)
        for (uint64_t head = 0; head < l.heads; ++head)
          for (uint64_t i = 0; i < l.head_size; ++i)
            visit(place + kv * l.kv_stride + token * l.token_stride +
                  head * l.head_stride + i * DTypeSize(l.dtype));
  }
}

inline std::vector<std::byte> ModelPageBytes(
    const KvLayout& layout, const std::vector<std::byte>& memory,
    uint64_t page) {
  std::vector<std::byte> bytes;
  ForEachElement(layout, page, [&](uint64_t offset) {
    for (uint32_t i = 0; i < DTypeSize(layout.dtype); ++i) {
      bytes.push_back(memory[offset + i]);
    }
  });
  return bytes;
}

inline void ModelWritePage(const KvLayout& layout,
                           const std::vector<std::byte>& bytes, uint64_t page,
                           std::vector<std::byte>& memory) {
  size_t next = 0;
  ForEachElement(layout, page, [&](uint64_t offset) {
    for (uint32_t i = 0; i < DTypeSize(layout.dtype); ++i) {
      memory[offset + i] = bytes[next++];
    }
  });
}

}  // namespace pando

#endif  // PANDO_TESTS_GPU_PAGE_MODEL_H_
