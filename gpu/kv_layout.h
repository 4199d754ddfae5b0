#ifndef PANDO_GPU_KV_LAYOUT_H_
#define PANDO_GPU_KV_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "gpu/dtype.h"

namespace pando {

// Order of a shard's memory, outermost first.
enum class LayoutOrder {
  // [layer][kv][page][token][head][i]: what attention kernels read.
  kLayerFirst,
  // [page][layer][kv][token][head][i]: a page is one contiguous block.
  kPageFirst,
};

std::string_view LayoutOrderName(LayoutOrder order);
absl::StatusOr<LayoutOrder> ParseLayoutOrder(std::string_view name);

// What a page is made of: the KV of tokens by heads, or bytes whose inside the
// workers alone know.
struct KvShape {
  uint32_t layers = 0;
  // 2: keys and values apart. 1: one latent vector (MLA).
  uint32_t kv_planes = 0;
  // KV heads held by one shard.
  uint32_t heads = 0;
  // Elements of one head.
  uint32_t head_size = 0;
  DType dtype = DType::kFloat32;
  uint32_t page_tokens = 0;
  LayoutOrder order = LayoutOrder::kLayerFirst;
  // Bytes of a page in one layer, where only that is known of it; kv_planes,
  // heads, head_size and dtype then say nothing. 0: they do.
  uint64_t opaque_bytes = 0;
  // Free text for what else workers must agree on, without semicolons.
  std::string page_format = {};
};

// A shape with its place in memory: element (layer, page, kv, token, head, i)
// of a shard begins at byte layer * layer_stride + page * page_stride +
// kv * kv_stride + token * token_stride + head * head_stride + i * size of
// dtype. Strides are in bytes. Made by MakeKvLayout only.
//
// Of an opaque page byte i in a layer is at layer * layer_stride +
// page * page_stride + i; kv_planes is 1, and what speaks of heads and tokens
// is 0.
struct KvLayout : KvShape {
  uint64_t layer_stride = 0;
  uint64_t page_stride = 0;
  uint64_t kv_stride = 0;
  uint64_t token_stride = 0;
  uint64_t head_stride = 0;
  // Bytes of a page in one layer and plane, which are contiguous.
  uint64_t piece_bytes = 0;
};

// The layout of a pool of that many pages, or an error that names the field at
// fault, its value and its limit.
absl::StatusOr<KvLayout> MakeKvLayout(const KvShape& shape,
                                      uint32_t capacity_pages);

// Bytes of one page over all layers, in one shard.
uint64_t PageBytes(const KvLayout& layout);

// Bytes of all pages, in one shard.
uint64_t PoolBytes(const KvLayout& layout, uint32_t capacity_pages);

// Identifies layout and model, so that a worker that disagrees on either is
// refused. Every client computes the same value.
uint64_t Fingerprint(const KvLayout& layout, std::string_view model);

}  // namespace pando

#endif  // PANDO_GPU_KV_LAYOUT_H_
