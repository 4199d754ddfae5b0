#include "clients/cpp/src/layout.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

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
    case DType::kOpaque:
      return 1;
  }
  return 0;
}

std::string NameOf(DType dtype) {
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
    case DType::kOpaque:
      return "opaque";
  }
  return "";
}

std::string NameOf(LayoutOrder order) {
  return order == LayoutOrder::kLayerFirst ? "layer_first" : "page_first";
}

// What workers must agree on. The bytes of a piece follow from the strides.
std::vector<std::string> FieldsOf(const KvLayout& layout,
                                  std::string_view model) {
  const auto number = [](const char* name, uint64_t value) {
    return absl::StrCat(name, "=", value);
  };
  return {number("layers", layout.layers),
          number("kv_planes", layout.kv_planes),
          number("heads", layout.heads),
          number("head_size", layout.head_size),
          absl::StrCat("dtype=", NameOf(layout.dtype)),
          number("page_tokens", layout.page_tokens),
          absl::StrCat("order=", NameOf(layout.order)),
          number("layer_stride", layout.layer_stride),
          number("page_stride", layout.page_stride),
          number("kv_stride", layout.kv_stride),
          number("token_stride", layout.token_stride),
          number("head_stride", layout.head_stride),
          absl::StrCat("page_format=", layout.page_format),
          absl::StrCat("model=", std::string(model))};
}

// A page format that is empty is left out.
std::string TextOf(const KvLayout& layout, std::string_view model) {
  std::vector<std::string> fields = FieldsOf(layout, model);
  if (layout.page_format.empty()) fields.erase(fields.end() - 2);
  return absl::StrCat("pando-kv-layout-v1;", absl::StrJoin(fields, ";"));
}

}  // namespace

KvLayout KvLayout::WithStrides(uint32_t capacity_pages) const {
  KvLayout out = *this;
  if (dtype == DType::kOpaque) {
    out.kv_planes = 1;
    out.heads = out.head_size = 0;
    out.token_stride = out.head_stride = 0;
  } else {
    out.head_stride = head_size * BytesOf(dtype);
    out.token_stride = heads * out.head_stride;
    out.piece_bytes = page_tokens * out.token_stride;
  }
  if (order == LayoutOrder::kLayerFirst) {
    out.page_stride = out.piece_bytes;
    out.kv_stride = capacity_pages * out.page_stride;
    out.layer_stride = out.kv_planes * out.kv_stride;
  } else {
    out.kv_stride = out.piece_bytes;
    out.layer_stride = out.kv_planes * out.kv_stride;
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
