#include "tiers/shared/block_values.h"

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

// The part before the MAC.
std::span<const std::byte> HeadOf(std::span<const std::byte> value) {
  return value.first(sizeof(ValueHeader));
}

}  // namespace

size_t BlockValues::header_bytes() const {
  return sizeof(ValueHeader) + (key_ == nullptr ? 0 : SharedKey::kMacBytes);
}

size_t BlockValues::value_bytes() const {
  return header_bytes() + page_bytes();
}

absl::Status BlockValues::CopyOut(PageId page,
                                  std::span<std::byte> value) const {
  return pages_->CopyOut(page, value.data() + header_bytes());
}

void BlockValues::Seal(const PageHash& hash, std::span<std::byte> value) const {
  const std::span<std::byte> page = value.subspan(header_bytes());
  const ValueHeader header = {.magic = kValueMagic,
                              .digest = digest_,
                              .hash = hash,
                              .page_bytes = page_bytes(),
                              .checksum = pages_->Checksum(page.data())};
  std::memcpy(value.data(), &header, sizeof(header));
  if (key_ == nullptr) return;
  const SharedKey::Mac mac = key_->Sign(HeadOf(value), page);
  std::memcpy(value.data() + sizeof(header), mac.data(), mac.size());
}

absl::Status BlockValues::Verify(const PageHash& hash,
                                 std::span<const std::byte> value) const {
  ValueHeader header;
  std::memcpy(&header, value.data(), sizeof(header));
  if (header.magic != kValueMagic || header.digest != digest_ ||
      header.hash != hash || header.page_bytes != page_bytes()) {
    return absl::DataLossError("its header is not of this block");
  }
  const std::span<const std::byte> page = value.subspan(header_bytes());
  if (key_ != nullptr) {
    SharedKey::Mac mac;
    std::memcpy(mac.data(), value.data() + sizeof(header), mac.size());
    if (!key_->Verify(mac, HeadOf(value), page)) {
      return absl::DataLossError("it was not signed with the shared key");
    }
  }
  if (header.checksum != pages_->Checksum(page.data())) {
    return absl::DataLossError("its checksum differs");
  }
  return absl::OkStatus();
}

absl::Status BlockValues::CopyIn(std::span<const std::byte> value,
                                 PageId page) const {
  return pages_->CopyIn(value.data() + header_bytes(), page);
}

}  // namespace pando
