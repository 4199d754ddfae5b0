#ifndef PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_
#define PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "tiers/blocks/block_name.h"
#include "tiers/shared/shared_key.h"

namespace pando {

// Names the form of sealed blocks. A store keeps blocks of another form apart.
inline constexpr uint64_t kFormOfBlocks = 0x70616e646f626c31;

// Converts blocks to the form in which a store keeps them. The store is not
// trusted, so a value begins with a header that names the kind and the key in
// full and has a checksum. A MAC follows if there is a secret. The bytes of all
// shards follow, as they lie in the memory. Immutable; thread-safe.
class BlockSeal {
 public:
  // Values are signed with `secret`, unless it is null.
  explicit BlockSeal(std::unique_ptr<SharedKey> secret = nullptr)
      : secret_(std::move(secret)) {}

  // Returns the size of what a value has in front of the block.
  size_t bytes() const;
  uint64_t ValueBytes(const TierKind& kind) const {
    return bytes() + kind.block_bytes;
  }
  // Writes the header, and the MAC. `value` has ValueBytes(kind) bytes, and
  // already has the block after the first bytes().
  void Seal(const TierKind& kind, std::string_view key,
            std::span<std::byte> value) const;
  // Returns DATA_LOSS if `value` is not what Seal made for this key of this
  // kind.
  absl::Status Verify(const TierKind& kind, std::string_view key,
                      std::span<const std::byte> value) const;

 private:
  const std::unique_ptr<SharedKey> secret_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SEALED_BLOCK_H_
