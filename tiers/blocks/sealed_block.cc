#include "tiers/blocks/sealed_block.h"

#include <cstring>

#include "gpu/page_checksum_plan.h"

namespace pando {
namespace {

constexpr uint64_t kSealMagic = 0x3173656c6264506e;

struct Header {
  uint64_t magic;
  uint64_t block_bytes;
  uint64_t checksum;
  uint64_t check;  // over the other fields
  PageHash kind;
  PageHash key;
};
static_assert(sizeof(Header) == 96);

// The length is a multiple of 8.
uint64_t ChecksumOf(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size() / sizeof(uint64_t); ++i) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i * sizeof(word), sizeof(word));
    sum += MixWord(word, i);
  }
  return sum;
}

Header MakeHeader(const TierKind& kind, std::string_view key,
                  std::span<const std::byte> block) {
  Header header = {.magic = kSealMagic,
                   .block_bytes = kind.block_bytes,
                   .checksum = ChecksumOf(block),
                   .check = 0,
                   .kind = kind.digest,
                   .key = SealedKeyOf(key)};
  header.check = ChecksumOf(std::as_bytes(std::span(&header, 1)));
  return header;
}

}  // namespace

size_t BlockSeal::bytes() const {
  return sizeof(Header) + (secret_ == nullptr ? 0 : SharedKey::kMacBytes);
}

void BlockSeal::Seal(const TierKind& kind, std::string_view key,
                     std::span<std::byte> value) const {
  const std::span<const std::byte> block = value.subspan(bytes());
  const Header header = MakeHeader(kind, key, block);
  std::memcpy(value.data(), &header, sizeof(header));
  if (secret_ == nullptr) return;
  const SharedKey::Mac mac = secret_->Sign(value.first(sizeof(header)), block);
  std::memcpy(value.data() + sizeof(header), mac.data(), mac.size());
}

absl::Status BlockSeal::Verify(const TierKind& kind, std::string_view key,
                               std::span<const std::byte> value) const {
  const std::span<const std::byte> block = value.subspan(bytes());
  if (secret_ != nullptr) {
    SharedKey::Mac mac;
    std::memcpy(mac.data(), value.data() + sizeof(Header), mac.size());
    if (!secret_->Verify(mac, value.first(sizeof(Header)), block)) {
      return absl::DataLossError(
          "a stored block was not signed with the shared key");
    }
  }
  const Header header = MakeHeader(kind, key, block);
  if (std::memcmp(value.data(), &header, sizeof(header)) == 0) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      "a stored block is not what was stored for its kind and key");
}

}  // namespace pando
