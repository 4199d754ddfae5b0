#include "base/kv_layout.h"

#include <openssl/sha.h>

#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace pando::kv {
namespace {

// Clears the fields that say nothing about an opaque page, so that equal
// layouts compare equal.
Shape Normalized(Shape shape) {
  if (shape.is_opaque()) {
    shape.kv_planes = 1;
    shape.heads = shape.head_size = 0;
    shape.dtype = DType::kOpaque;
  }
  return shape;
}

}  // namespace

std::string_view LayoutOrderName(LayoutOrder order) {
  return order == LayoutOrder::kLayerFirst ? "layer_first" : "page_first";
}

absl::StatusOr<LayoutOrder> ParseLayoutOrder(std::string_view name) {
  for (LayoutOrder order :
       {LayoutOrder::kLayerFirst, LayoutOrder::kPageFirst}) {
    if (LayoutOrderName(order) == name) return order;
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "layout order is '%s'; must be layer_first or page_first", name));
}

Layout WithStrides(const Shape& shape, uint32_t capacity_pages) {
  Layout layout{Normalized(shape)};
  layout.head_stride = uint64_t{layout.head_size} * DTypeSize(layout.dtype);
  layout.token_stride = layout.heads * layout.head_stride;
  layout.piece_bytes = shape.is_opaque()
                           ? shape.opaque_bytes
                           : layout.page_tokens * layout.token_stride;
  if (layout.order == LayoutOrder::kLayerFirst) {
    layout.page_stride = layout.piece_bytes;
    layout.kv_stride = capacity_pages * layout.page_stride;
    layout.layer_stride = layout.kv_planes * layout.kv_stride;
  } else {
    layout.kv_stride = layout.piece_bytes;
    layout.layer_stride = layout.kv_planes * layout.kv_stride;
    layout.page_stride = layout.layers * layout.layer_stride;
  }
  return layout;
}

// piece_bytes is left out, because it follows from the strides.
std::vector<std::string> AgreedFields(const Layout& layout,
                                      std::string_view model) {
  const auto field = [](const char* name, uint64_t value) {
    return absl::StrCat(name, "=", value);
  };
  const auto text = [](const char* name, std::string_view value) {
    return absl::StrFormat("%s=%s", name, value);
  };
  return {field("layers", layout.layers),
          field("kv_planes", layout.kv_planes),
          field("heads", layout.heads),
          field("head_size", layout.head_size),
          text("dtype", DTypeName(layout.dtype)),
          field("page_tokens", layout.page_tokens),
          text("order", LayoutOrderName(layout.order)),
          field("layer_stride", layout.layer_stride),
          field("page_stride", layout.page_stride),
          field("kv_stride", layout.kv_stride),
          field("token_stride", layout.token_stride),
          field("head_stride", layout.head_stride),
          text("page_format", layout.page_format),
          text("model", model)};
}

uint64_t Fingerprint(const Layout& layout, std::string_view model) {
  std::vector<std::string> fields = AgreedFields(layout, model);
  // An empty page format is left out of the hash.
  if (layout.page_format.empty()) fields.erase(fields.end() - 2);
  const std::string text =
      absl::StrCat("pando-kv-layout-v1;", absl::StrJoin(fields, ";"));
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest.data());
  // The value is the first 8 bytes read as little endian.
  static_assert(std::endian::native == std::endian::little);
  uint64_t fingerprint;
  std::memcpy(&fingerprint, digest.data(), sizeof(fingerprint));
  return fingerprint;
}

}  // namespace pando::kv
