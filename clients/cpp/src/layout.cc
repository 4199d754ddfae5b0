#include "clients/cpp/src/layout.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace pando {
inline namespace client {
namespace {

uint64_t BytesOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return 1;
  }
  return 0;
}

std::string_view NameOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kFloat8E4M3:
      return "float8_e4m3";
    case DType::kFloat8E5M2:
      return "float8_e5m2";
  }
  return "";
}

std::string_view NameOf(LayoutOrder order) {
  return order == LayoutOrder::kLayerFirst ? "layer_first" : "page_first";
}

std::string TextOf(const KvLayout& layout, std::string_view model) {
  return absl::StrFormat(
      "pando-kv-layout-v1;layers=%u;kv_planes=%u;heads=%u;head_size=%u;"
      "dtype=%s;page_tokens=%u;order=%s;layer_stride=%u;page_stride=%u;"
      "kv_stride=%u;token_stride=%u;head_stride=%u;model=%s",
      layout.layers, layout.kv_planes, layout.heads, layout.head_size,
      NameOf(layout.dtype), layout.page_tokens, NameOf(layout.order),
      layout.layer_stride, layout.page_stride, layout.kv_stride,
      layout.token_stride, layout.head_stride, model);
}

std::vector<std::string> FieldsOf(const KvLayout& layout,
                                  std::string_view model) {
  // The model is the last of 14 and may have any characters.
  return absl::StrSplit(TextOf(layout, model), absl::MaxSplits(';', 13));
}

}  // namespace

KvLayout KvLayout::WithStrides(uint32_t capacity_pages) const {
  KvLayout out = *this;
  out.head_stride = head_size * BytesOf(dtype);
  out.token_stride = heads * out.head_stride;
  const uint64_t plane_page = page_tokens * out.token_stride;
  if (order == LayoutOrder::kLayerFirst) {
    out.page_stride = plane_page;
    out.kv_stride = capacity_pages * out.page_stride;
    out.layer_stride = kv_planes * out.kv_stride;
  } else {
    out.kv_stride = plane_page;
    out.layer_stride = kv_planes * out.kv_stride;
    out.page_stride = layers * out.layer_stride;
  }
  return out;
}

uint64_t Fingerprint(const KvLayout& layout, std::string_view model) {
  const std::string text = TextOf(layout, model);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest.data());
  // The value is the first 8 bytes read as little endian.
  static_assert(std::endian::native == std::endian::little);
  uint64_t fingerprint;
  std::memcpy(&fingerprint, digest.data(), sizeof(fingerprint));
  return fingerprint;
}

std::string LayoutDifference(const KvLayout& stated, std::string_view model,
                             const PoolDescription& pool) {
  const std::vector<std::string> ours = FieldsOf(stated, model);
  const std::vector<std::string> theirs = FieldsOf(pool.layout, pool.model);
  const auto [a, b] = std::ranges::mismatch(ours, theirs);
  if (a == ours.end()) return "";
  return absl::StrFormat("%s, but the pool has %s", *a, *b);
}

}  // namespace client
}  // namespace pando
