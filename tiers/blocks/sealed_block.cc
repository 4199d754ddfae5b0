#include "tiers/blocks/sealed_block.h"

#include <cstring>

#include "gpu/page_checksum_plan.h"

namespace pando {
namespace {

constexpr uint64_t kSealMagic = 0x3173656c6264506e;

struct Seal {
  uint64_t magic;
  uint64_t block_bytes;
  uint64_t checksum;
  uint64_t check;  // over the other fields
  PageHash kind;
  PageHash key;
};
static_assert(sizeof(Seal) == kSealBytes);

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

Seal MakeSeal(const TierKind& kind, std::string_view key,
              std::span<const std::byte> value) {
  Seal seal = {.magic = kSealMagic,
               .block_bytes = kind.block_bytes,
               .checksum = ChecksumOf(value.subspan(kSealBytes)),
               .check = 0,
               .kind = kind.digest,
               .key = SealedKeyOf(key)};
  seal.check = ChecksumOf(std::as_bytes(std::span(&seal, 1)));
  return seal;
}

}  // namespace

void SealBlock(const TierKind& kind, std::string_view key,
               std::span<std::byte> value) {
  const Seal seal = MakeSeal(kind, key, value);
  std::memcpy(value.data(), &seal, sizeof(seal));
}

absl::Status VerifyBlock(const TierKind& kind, std::string_view key,
                         std::span<const std::byte> value) {
  const Seal seal = MakeSeal(kind, key, value);
  if (std::memcmp(value.data(), &seal, sizeof(seal)) == 0) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      "a stored block is not what was stored for its kind and key");
}

}  // namespace pando
