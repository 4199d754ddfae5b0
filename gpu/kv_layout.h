#ifndef PANDO_GPU_KV_LAYOUT_H_
#define PANDO_GPU_KV_LAYOUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/kv_layout.h"

namespace pando {

using kv::DType;
using kv::DTypeName;
using kv::DTypeSize;
using kv::Fingerprint;
using kv::LayoutOrder;
using kv::LayoutOrderName;
using kv::ParseDType;
using kv::ParseLayoutOrder;
using KvShape = kv::Shape;
using KvLayout = kv::Layout;

// Makes the layout of a pool of `capacity_pages` pages, and checks it.
// INVALID_ARGUMENT names the wrong field, its value and its limit.
absl::StatusOr<KvLayout> MakeKvLayout(const KvShape& shape,
                                      uint32_t capacity_pages);

// Bytes of one page over all layers, in one shard.
uint64_t PageBytes(const KvLayout& layout);

// Bytes of all pages, in one shard.
uint64_t PoolBytes(const KvLayout& layout, uint32_t capacity_pages);

}  // namespace pando

#endif  // PANDO_GPU_KV_LAYOUT_H_
