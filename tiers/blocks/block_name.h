#ifndef PANDO_TIERS_BLOCKS_BLOCK_NAME_H_
#define PANDO_TIERS_BLOCKS_BLOCK_NAME_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "core/nodes/page_hash.h"
#include "core/requests/block_requests.h"

namespace pando {

// A kind as tiers know it, the same in every process: a digest of its
// namespace, its identity and its sizes. Generations are not in it, as they are
// counted anew in each process: a tier forgets those that were replaced.
struct TierKind {
  KindNumber number;  // of the generation that is the newest one
  PageHash digest = {};
  uint32_t key_bytes = 0;
  uint64_t block_bytes = 0;
  std::string label;

  // Names its blocks. Two kinds that share it are told apart by the digest,
  // which is stored with each block.
  uint64_t name() const;
};

TierKind TierKindOf(const BlockKind& kind);

// A block in a tier.
struct BlockName {
  uint64_t kind = 0;  // TierKind::name
  PageHash key = {};  // TierKeyOf

  friend bool operator==(const BlockName&, const BlockName&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const BlockName& name) {
    return H::combine(std::move(state), name.kind, name.key);
  }
};

// Names a key within its kind, the same in every process, and quickly. A key of
// up to 32 bytes is its own name. A longer one has its first 16 bytes and a mix
// of all of them: two keys that shared a name would be told apart by the header
// of their block, and the second one would be a miss.
PageHash TierKeyOf(std::string_view key);

// Names a key in the header of its block: no two keys share it. The SHA-256 of
// a key of more than 32 bytes takes long, so it is not for a call that others
// wait for.
PageHash SealedKeyOf(std::string_view key);

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_NAME_H_
