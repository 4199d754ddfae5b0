#include "clients/cpp/src/layout.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/fitting_pandod.h"
#include "base/kv_layout.h"

namespace pando {
inline namespace client {
namespace {

// The cast is right, because the two types have the same enumerators in the
// same order.
kv::DType ToBase(DType dtype) { return static_cast<kv::DType>(dtype); }
static_assert(static_cast<int>(DType::kOpaque) ==
              static_cast<int>(kv::DType::kOpaque));
kv::LayoutOrder ToBase(LayoutOrder order) {
  return order == LayoutOrder::kLayerFirst ? kv::LayoutOrder::kLayerFirst
                                           : kv::LayoutOrder::kPageFirst;
}

kv::Shape ShapeOf(const KvLayout& layout) {
  return {
      .layers = layout.layers,
      .kv_planes = layout.kv_planes,
      .heads = layout.heads,
      .head_size = layout.head_size,
      .dtype = ToBase(layout.dtype),
      .page_tokens = layout.page_tokens,
      .order = ToBase(layout.order),
      .opaque_bytes = layout.dtype == DType::kOpaque ? layout.piece_bytes : 0,
      .page_format = layout.page_format};
}

// Converts a layout. Keeps its strides as they are, without a check.
kv::Layout ToBase(const KvLayout& layout) {
  kv::Layout out{ShapeOf(layout)};
  out.layer_stride = layout.layer_stride;
  out.page_stride = layout.page_stride;
  out.kv_stride = layout.kv_stride;
  out.token_stride = layout.token_stride;
  out.head_stride = layout.head_stride;
  out.piece_bytes = layout.piece_bytes;
  return out;
}

bool IsStride(std::string_view field) {
  return field.substr(0, field.find('=')).ends_with("_stride");
}

}  // namespace

KvLayout KvLayout::WithStrides(uint32_t capacity_pages) const {
  const kv::Layout placed = kv::WithStrides(ShapeOf(*this), capacity_pages);
  KvLayout out = *this;
  out.kv_planes = placed.kv_planes;
  out.heads = placed.heads;
  out.head_size = placed.head_size;
  out.layer_stride = placed.layer_stride;
  out.page_stride = placed.page_stride;
  out.kv_stride = placed.kv_stride;
  out.token_stride = placed.token_stride;
  out.head_stride = placed.head_stride;
  out.piece_bytes = placed.piece_bytes;
  return out;
}

uint64_t Fingerprint(const KvLayout& layout, std::string_view model) {
  return kv::Fingerprint(ToBase(layout), model);
}

std::string LayoutDifference(const KvLayout& stated, std::string_view model,
                             const PoolDescription& pool) {
  const std::vector<std::string> ours = kv::AgreedFields(ToBase(stated), model);
  const std::vector<std::string> theirs =
      kv::AgreedFields(ToBase(pool.layout), pool.model);
  std::vector<std::string> stated_fields;
  std::vector<std::string> pool_fields;
  // Strides follow from the other fields, so they are named only if those
  // agree.
  for (const bool with_strides : {false, true}) {
    for (size_t i = 0; i < ours.size(); ++i) {
      if (ours[i] == theirs[i] || IsStride(ours[i]) != with_strides) continue;
      stated_fields.push_back(ours[i]);
      pool_fields.push_back(theirs[i]);
    }
    if (!stated_fields.empty()) break;
  }
  if (stated_fields.empty()) return "";
  const auto is_on_gpu = [](const Shard& shard) {
    return shard.device != "host";
  };
  const kv::PoolSize size = {
      .shard_bytes = pool.is_absent ? 0 : pool.capacity_pages * pool.page_bytes,
      .shards = pool.shards.size(),
      .is_on_gpu = std::ranges::any_of(pool.shards, is_on_gpu)};
  return absl::StrFormat("%s, but the pool has %s; a pool that fits: %s",
                         absl::StrJoin(stated_fields, ", "),
                         absl::StrJoin(pool_fields, ", "),
                         kv::FittingPandod(ShapeOf(stated), model, size));
}

}  // namespace client
}  // namespace pando
