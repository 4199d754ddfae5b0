// The layout of the pool's memory.
#ifndef PANDO_POOL_H_
#define PANDO_POOL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pando/types.h"

namespace pando {
inline namespace client {

enum class DType {
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  // Bytes whose meaning only the workers know: the layout tells where whole
  // pages are, but not tokens or heads.
  kOpaque,
};

enum class LayoutOrder {
  // A layer is contiguous over all pages: what attention kernels read.
  kLayerFirst,
  // A page is contiguous over all layers: best for copies.
  kPageFirst,
};

// Where the bytes of one element lie within a shard. Strides are in bytes.
struct KvLayout {
  uint32_t layers = 0;
  // 2 if keys and values are apart, 1 for a single latent vector (MLA).
  uint32_t kv_planes = 0;
  // KV heads held by one shard.
  uint32_t heads = 0;
  uint32_t head_size = 0;
  DType dtype = DType::kFloat32;
  uint32_t page_tokens = 0;
  LayoutOrder order = LayoutOrder::kLayerFirst;
  uint64_t layer_stride = 0;
  uint64_t page_stride = 0;
  uint64_t kv_stride = 0;
  uint64_t token_stride = 0;
  uint64_t head_stride = 0;
  // The size of a piece: the contiguous bytes of one page in one layer and
  // plane.
  uint64_t piece_bytes = 0;
  // Anything else that workers must agree on, such as the contents of an opaque
  // page. It is compared as text.
  std::string page_format = {};

  // Returns the byte offset of the first element of a head. `kv` is 0 for keys
  // and 1 for values.
  uint64_t Offset(uint32_t layer, PageId page, uint32_t kv, uint32_t token,
                  uint32_t head) const {
    return layer * layer_stride + page * page_stride + kv * kv_stride +
           token * token_stride + head * head_stride;
  }

  // Returns this layout with the strides that pandod would give it in a pool of
  // `capacity_pages` pages, to compare with PoolDescription::layout. For an
  // opaque layout, set layers, page_tokens, order, piece_bytes and page_format.
  KvLayout WithStrides(uint32_t capacity_pages) const;
};

// Returns a hash of layout and model. It equals PoolDescription::fingerprint if
// both agree with the pool's.
uint64_t Fingerprint(const KvLayout& layout, std::string_view model);

// The pool's memory on one device; tensor-parallel rank r uses shard r.
struct Shard {
  // "host" for shared host memory; "cuda:" and the UUID of a GPU for its
  // memory.
  std::string device;
  uint64_t size_bytes = 0;
};

struct PoolDescription {
  // The number of pages, including the padding page: page ids are
  // 1..capacity_pages-1.
  uint32_t capacity_pages = 0;
  KvLayout layout;
  std::vector<Shard> shards;
  // Names the model that the KV belongs to; empty when not configured.
  std::string model;
  // Hash of layout and model.
  uint64_t fingerprint = 0;
  // Bytes of one page over all layers, in one shard.
  uint64_t page_bytes = 0;
  // Whether the pool is open: it takes its layout from the first worker that
  // attaches with one. Until then it has no pages, and `layout` and
  // `page_bytes` have no meaning.
  bool is_open = false;
  // Whether the server has blocks but no pool. Then the other fields have no
  // meaning.
  bool is_absent = false;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_POOL_H_
