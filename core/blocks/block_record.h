#ifndef PANDO_CORE_BLOCKS_BLOCK_RECORD_H_
#define PANDO_CORE_BLOCKS_BLOCK_RECORD_H_

#include <cstdint>

#include "core/nodes/steady_index.h"

namespace pando {

// Names a block, or the room for one, within BlockMemory: the number of its
// extent and of its slot there.
using BlockNumber = uint32_t;
inline constexpr BlockNumber kNoBlock = SteadyIndex::kNone;

enum class BlockState : uint8_t {
  kFree,
  kWritten,   // reserved, and found by its key
  kDetached,  // reserved, and not found any more: another may write the key
  kReady,     // published: immutable
};

// The state of one block. Plain data, in the records of its extent, before its
// key; there are millions of them, so each bit counts.
//
// A link to the block before is good while that block has the generation that
// the link remembers; see BlockTable::Link.
struct __attribute__((packed, aligned(4))) BlockRecord {
  // With kReady the stamp of its last use; else when it was reserved, in
  // milliseconds.
  uint64_t stamp : 45 = 0;
  uint64_t generation : 16 = 0;
  uint64_t state : 3 = 0;
  uint64_t locks : 24 = 0;
  uint64_t followers : 24 = 0;  // blocks whose link to this one is good
  uint64_t previous_generation : 16 = 0;
  // The link to the block before; of a free slot the next free one.
  uint32_t previous = kNoBlock;

  BlockState block_state() const { return static_cast<BlockState>(state); }
  void set_state(BlockState value) { state = static_cast<uint64_t>(value); }
  bool is_written() const {
    return block_state() == BlockState::kWritten ||
           block_state() == BlockState::kDetached;
  }
  // Nothing is in the way of evicting it.
  bool is_leaf() const {
    return block_state() == BlockState::kReady && locks == 0 && followers == 0;
  }

  static constexpr uint32_t kMaxCount = (1u << 24) - 1;  // locks, followers
};
static_assert(sizeof(BlockRecord) == 20);

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_RECORD_H_
