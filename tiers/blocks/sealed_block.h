#ifndef PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_
#define PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "tiers/blocks/block_name.h"

namespace pando {

// A block as a store keeps it, which is trusted with nothing: a header that
// names the kind and the key in full, with a checksum, then the bytes of all
// shards as they lie in the memory.
inline constexpr size_t kSealBytes = 96;

inline uint64_t SealedBytes(const TierKind& kind) {
  return kSealBytes + kind.block_bytes;
}

// Fills in the header. `value` has SealedBytes(kind) bytes, the block in place.
void SealBlock(const TierKind& kind, std::string_view key,
               std::span<std::byte> value);
// DataLoss: it is not what was sealed for this key of this kind.
absl::Status VerifyBlock(const TierKind& kind, std::string_view key,
                         std::span<const std::byte> value);

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_
