#ifndef PANDO_TIERS_BLOCKS_BLOCK_SOURCE_H_
#define PANDO_TIERS_BLOCKS_BLOCK_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "tiers/blocks/block_name.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// A block to read from where a tier keeps it, and how that went.
struct BlockRead {
  std::string_view key;
  BlockName name;
  std::span<std::byte> value;  // ends with the bytes of all shards
  absl::Status status;
};

// Where a tier keeps blocks: the interface between BlockLoads and what it reads
// from. Owned by the tier. One thread calls it.
class BlockSource {
 public:
  virtual ~BlockSource() = default;

  // Returns how many blocks Read takes at most.
  virtual size_t most_at_once() const = 0;
  // Returns the size of the values that Read fills.
  virtual uint64_t ValueBytes(const TierKind& kind) const = 0;
  // Reads blocks of one kind, verifies them, and sets the status of each:
  // NOT_FOUND if the source has no such block any more, or does not read the
  // kind now; another error if it could not read a block that it may have. It
  // counts and logs failures.
  virtual void Read(const std::shared_ptr<KnownKind>& kind,
                    std::span<BlockRead> blocks) = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_SOURCE_H_
