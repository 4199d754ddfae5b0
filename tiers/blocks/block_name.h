#ifndef PANDO_TIERS_BLOCKS_BLOCK_NAME_H_
#define PANDO_TIERS_BLOCKS_BLOCK_NAME_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/nodes/page_hash.h"
#include "core/requests/block_requests.h"

namespace pando {

// A kind as tiers know it. Its digest covers its namespace, its identity and
// its sizes, and is the same in every process. The digest does not cover the
// generation, because each process counts generations anew; a tier forgets the
// blocks of replaced generations instead.
struct TierKind {
  KindNumber number;  // of the newest generation
  PageHash digest = {};
  uint32_t key_bytes = 0;
  uint64_t block_bytes = 0;
  std::string label;

  // The number that names the kind in BlockName. Two kinds could share it; the
  // digest, which is stored with each block, tells them apart.
  uint64_t name() const;
};

// Returns a kind of the block memory as tiers know it.
TierKind TierKindOf(const BlockKind& kind);

// The name of a block in a tier.
struct BlockName {
  uint64_t kind = 0;  // TierKind::name
  PageHash key = {};  // TierKeyOf

  friend bool operator==(const BlockName&, const BlockName&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const BlockName& name) {
    return H::combine(std::move(state), name.kind, name.key);
  }
};

// Returns the name of a key within its kind. It is the same in every process,
// and quick to compute. A key of up to 32 bytes is its own name. The name of a
// longer key has its first 16 bytes and a mix of all its bytes. If two keys
// shared a name, the header of the block would tell them apart, and the second
// one would be a miss.
PageHash TierKeyOf(std::string_view key);

// Returns the name of a key in the header of its block, which no two keys
// share. For a key of more than 32 bytes it is a SHA-256, which is slow, so do
// not call this in the turn.
PageHash SealedKeyOf(std::string_view key);

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_NAME_H_
