#include "gpu/kv_layout.h"

#include <openssl/sha.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/str_format.h"

namespace pando {
namespace {

// Far above any model. With these limits the bytes of a page fit in 64 bits,
// and those of a pool in 128.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxHeadSize = 65536;
constexpr uint32_t kMaxPageTokens = 65536;
constexpr uint64_t kMaxOpaqueBytes = uint64_t{1} << 32;
constexpr size_t kMaxFormatBytes = 256;
// The padding page and one more.
constexpr uint32_t kMinCapacityPages = 2;
// What a file offset can name.
constexpr uint64_t kMaxPoolBytes = std::numeric_limits<int64_t>::max();

absl::Status CheckRange(std::string_view field, uint32_t value, uint32_t min,
                        uint32_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is %u; must be from %u to %u", field, value, min, max));
}

bool IsOpaque(const KvShape& shape) { return shape.opaque_bytes > 0; }

absl::Status CheckFormat(std::string_view format) {
  if (format.size() > kMaxFormatBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("page_format has %u bytes; the limit is %u",
                        format.size(), kMaxFormatBytes));
  }
  if (format.find(';') != std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "page_format is '%s'; must be without semicolons", format));
  }
  return absl::OkStatus();
}

absl::Status CheckRanges(const KvShape& shape, uint32_t capacity_pages) {
  struct Range {
    std::string_view field;
    uint32_t value, min, max;
  };
  const Range ranges[] = {
      {"layers", shape.layers, 1, kMaxLayers},
      {"kv_planes", IsOpaque(shape) ? 1 : shape.kv_planes, 1, 2},
      {"heads", IsOpaque(shape) ? 1 : shape.heads, 1, kMaxHeads},
      {"head_size", IsOpaque(shape) ? 1 : shape.head_size, 1, kMaxHeadSize},
      {"page_tokens", shape.page_tokens, 1, kMaxPageTokens},
      {"capacity_pages", capacity_pages, kMinCapacityPages,
       std::numeric_limits<uint32_t>::max()},
  };
  for (const Range& range : ranges) {
    absl::Status status =
        CheckRange(range.field, range.value, range.min, range.max);
    if (!status.ok()) return status;
  }
  if (shape.opaque_bytes > kMaxOpaqueBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a page has %u bytes in a layer; the limit is %u",
                        shape.opaque_bytes, kMaxOpaqueBytes));
  }
  return CheckFormat(shape.page_format);
}

// Without what says nothing of an opaque page, so that equal layouts are equal.
KvShape Normalized(KvShape shape) {
  if (IsOpaque(shape)) {
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

absl::StatusOr<KvLayout> MakeKvLayout(const KvShape& shape,
                                      uint32_t capacity_pages) {
  absl::Status status = CheckRanges(shape, capacity_pages);
  if (!status.ok()) return status;

  KvLayout layout{Normalized(shape)};
  layout.head_stride = uint64_t{layout.head_size} * DTypeSize(layout.dtype);
  layout.token_stride = layout.heads * layout.head_stride;
  layout.piece_bytes = IsOpaque(shape)
                           ? shape.opaque_bytes
                           : layout.page_tokens * layout.token_stride;
  const absl::uint128 pool_bytes =
      absl::uint128(PageBytes(layout)) * capacity_pages;
  if (pool_bytes > kMaxPoolBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "capacity_pages is %u with pages of %u bytes; a shard can have at most "
        "%u bytes",
        capacity_pages, PageBytes(layout), kMaxPoolBytes));
  }

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

uint64_t PageBytes(const KvLayout& layout) {
  return uint64_t{layout.layers} * layout.kv_planes * layout.piece_bytes;
}

uint64_t PoolBytes(const KvLayout& layout, uint32_t capacity_pages) {
  return PageBytes(layout) * capacity_pages;
}

// The bytes of a piece follow from the strides.
uint64_t Fingerprint(const KvLayout& layout, std::string_view model) {
  const std::string format =
      layout.page_format.empty() ? "" : ";page_format=" + layout.page_format;
  const std::string text = absl::StrFormat(
      "pando-kv-layout-v1;layers=%u;kv_planes=%u;heads=%u;head_size=%u;"
      "dtype=%s;page_tokens=%u;order=%s;layer_stride=%u;page_stride=%u;"
      "kv_stride=%u;token_stride=%u;head_stride=%u%s;model=%s",
      layout.layers, layout.kv_planes, layout.heads, layout.head_size,
      DTypeName(layout.dtype), layout.page_tokens,
      LayoutOrderName(layout.order), layout.layer_stride, layout.page_stride,
      layout.kv_stride, layout.token_stride, layout.head_stride, format, model);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest.data());
  // The value is the first 8 bytes read as little endian.
  static_assert(std::endian::native == std::endian::little);
  uint64_t fingerprint;
  std::memcpy(&fingerprint, digest.data(), sizeof(fingerprint));
  return fingerprint;
}

}  // namespace pando
