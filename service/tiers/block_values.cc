#include "service/tiers/block_values.h"

#include <cstring>

namespace pando {
namespace {

constexpr uint64_t kValueMagic = 0x31766b6c62746e50;  // "Pntblkv1"

struct ValueHeader {
  uint64_t magic;
  uint64_t digest;
  PageHash hash;
  uint64_t page_bytes;
  uint64_t checksum;  // of the page
};
static_assert(sizeof(ValueHeader) == 64);

}  // namespace

size_t BlockValues::value_bytes() const {
  return sizeof(ValueHeader) + page_bytes();
}

absl::Status BlockValues::CopyOut(PageId page,
                                  std::span<std::byte> value) const {
  return pages_->CopyOut(page, value.data() + sizeof(ValueHeader));
}

void BlockValues::Seal(const PageHash& hash, std::span<std::byte> value) const {
  const ValueHeader header = {
      .magic = kValueMagic,
      .digest = digest_,
      .hash = hash,
      .page_bytes = page_bytes(),
      .checksum = pages_->Checksum(value.data() + sizeof(ValueHeader))};
  std::memcpy(value.data(), &header, sizeof(header));
}

absl::Status BlockValues::Verify(const PageHash& hash,
                                 std::span<const std::byte> value) const {
  ValueHeader header;
  std::memcpy(&header, value.data(), sizeof(header));
  if (header.magic != kValueMagic || header.digest != digest_ ||
      header.hash != hash || header.page_bytes != page_bytes()) {
    return absl::DataLossError("its header is not of this block");
  }
  if (header.checksum != pages_->Checksum(value.data() + sizeof(header))) {
    return absl::DataLossError("its checksum differs");
  }
  return absl::OkStatus();
}

absl::Status BlockValues::CopyIn(std::span<const std::byte> value,
                                 PageId page) const {
  return pages_->CopyIn(value.data() + sizeof(ValueHeader), page);
}

}  // namespace pando
