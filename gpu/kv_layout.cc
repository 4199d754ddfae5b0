#include "gpu/kv_layout.h"

#include <limits>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando {
namespace {

// These limits are far above any model. They make sure that the bytes of a page
// fit in 64 bits, and those of a pool in 128 bits.
constexpr uint32_t kMaxLayers = 4096;
constexpr uint32_t kMaxHeads = 4096;
constexpr uint32_t kMaxHeadSize = 65536;
constexpr uint32_t kMaxPageTokens = 65536;
constexpr uint64_t kMaxOpaqueBytes = uint64_t{1} << 32;
constexpr size_t kMaxFormatBytes = 256;
// A pool has the padding page and at least one more.
constexpr uint32_t kMinCapacityPages = 2;
// The largest offset that a file can have.
constexpr uint64_t kMaxPoolBytes = std::numeric_limits<int64_t>::max();

absl::Status CheckRange(std::string_view field, uint32_t value, uint32_t min,
                        uint32_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is %u; must be from %u to %u", field, value, min, max));
}

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
      {"kv_planes", shape.is_opaque() ? 1 : shape.kv_planes, 1, 2},
      {"heads", shape.is_opaque() ? 1 : shape.heads, 1, kMaxHeads},
      {"head_size", shape.is_opaque() ? 1 : shape.head_size, 1, kMaxHeadSize},
      {"page_tokens", shape.page_tokens, 1, kMaxPageTokens},
      {"capacity_pages", capacity_pages, kMinCapacityPages,
       std::numeric_limits<uint32_t>::max()},
  };
  for (const Range& range : ranges) {
    RETURN_IF_ERROR(CheckRange(range.field, range.value, range.min, range.max));
  }
  if (shape.opaque_bytes > kMaxOpaqueBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a page has %u bytes in a layer; the limit is %u",
                        shape.opaque_bytes, kMaxOpaqueBytes));
  }
  return CheckFormat(shape.page_format);
}

}  // namespace

absl::StatusOr<KvLayout> MakeKvLayout(const KvShape& shape,
                                      uint32_t capacity_pages) {
  RETURN_IF_ERROR(CheckRanges(shape, capacity_pages));

  KvLayout layout = kv::WithStrides(shape, capacity_pages);
  const absl::uint128 pool_bytes =
      absl::uint128(PageBytes(layout)) * capacity_pages;
  if (pool_bytes > kMaxPoolBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "capacity_pages is %u with pages of %u bytes; a shard can have at most "
        "%u bytes",
        capacity_pages, PageBytes(layout), kMaxPoolBytes));
  }
  return layout;
}

uint64_t PageBytes(const KvLayout& layout) {
  return uint64_t{layout.layers} * layout.kv_planes * layout.piece_bytes;
}

uint64_t PoolBytes(const KvLayout& layout, uint32_t capacity_pages) {
  return PageBytes(layout) * capacity_pages;
}

}  // namespace pando
