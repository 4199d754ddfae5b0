#ifndef PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_
#define PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "tiers/blocks/block_name.h"

namespace pando {

// The form in which a store keeps a block. The store is not trusted, so the
// value begins with a header that names the kind and the key in full and has a
// checksum. The bytes of all shards follow, as they lie in the memory.
inline constexpr size_t kSealBytes = 96;

// Returns the size of a sealed block.
inline uint64_t SealedBytes(const TierKind& kind) {
  return kSealBytes + kind.block_bytes;
}

// Writes the header. `value` has SealedBytes(kind) bytes, and already has the
// block after the header.
void SealBlock(const TierKind& kind, std::string_view key,
               std::span<std::byte> value);
// Returns DATA_LOSS if `value` is not what SealBlock made for this key of this
// kind.
absl::Status VerifyBlock(const TierKind& kind, std::string_view key,
                         std::span<const std::byte> value);

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_
