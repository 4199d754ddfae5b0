// Where the bytes of KV lie, and what workers must agree on. pandod and its C++
// client share this code; docs/protocol.md says the same for other languages.
#ifndef PANDO_BASE_KV_LAYOUT_H_
#define PANDO_BASE_KV_LAYOUT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/dtype.h"

// These types are not in namespace pando itself, because the client has types
// of the same names there.
namespace pando::kv {

// Order of a shard's memory, outermost first.
enum class LayoutOrder {
  // [layer][kv][page][token][head][i]: what attention kernels read.
  kLayerFirst,
  // [page][layer][kv][token][head][i]: a page is one contiguous block.
  kPageFirst,
};

std::string_view LayoutOrderName(LayoutOrder order);
absl::StatusOr<LayoutOrder> ParseLayoutOrder(std::string_view name);

// The contents of a page: the KV of tokens by heads, or opaque bytes whose
// structure only the workers know.
struct Shape {
  uint32_t layers = 0;
  // 2: keys and values are separate. 1: one latent vector (MLA).
  uint32_t kv_planes = 0;
  // KV heads held by one shard.
  uint32_t heads = 0;
  // Elements of one head.
  uint32_t head_size = 0;
  DType dtype = DType::kFloat32;
  uint32_t page_tokens = 0;
  LayoutOrder order = LayoutOrder::kLayerFirst;
  // If not 0, pages are opaque: this is the number of bytes of a page in one
  // layer, and kv_planes, heads, head_size and dtype mean nothing.
  uint64_t opaque_bytes = 0;
  // Free text for what else workers must agree on, without semicolons.
  std::string page_format = {};

  bool is_opaque() const { return opaque_bytes > 0; }
};

// A shape with its place in memory: element (layer, page, kv, token, head, i)
// of a shard begins at byte layer * layer_stride + page * page_stride +
// kv * kv_stride + token * token_stride + head * head_stride + i * size of
// dtype. Strides are in bytes. Made by WithStrides.
//
// In an opaque page, byte i of a layer is at layer * layer_stride +
// page * page_stride + i; kv_planes is 1, and the fields about heads and tokens
// are 0.
struct Layout : Shape {
  uint64_t layer_stride = 0;
  uint64_t page_stride = 0;
  uint64_t kv_stride = 0;
  uint64_t token_stride = 0;
  uint64_t head_stride = 0;
  // Bytes of a page in one layer and plane, which are contiguous.
  uint64_t piece_bytes = 0;
};

// Returns the layout of a pool of `capacity_pages` pages. It checks nothing: if
// the pool is too large for 64 bits, the strides are meaningless.
Layout WithStrides(const Shape& shape, uint32_t capacity_pages);

// Returns the fields that all workers must agree on, one string each, such as
// "heads=8". The page format is included even if it is empty.
std::vector<std::string> AgreedFields(const Layout& layout,
                                      std::string_view model);

// A hash of layout and model, by which a worker that disagrees on either is
// refused.
uint64_t Fingerprint(const Layout& layout, std::string_view model);

}  // namespace pando::kv

#endif  // PANDO_BASE_KV_LAYOUT_H_
