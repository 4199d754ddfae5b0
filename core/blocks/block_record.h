#ifndef PANDO_CORE_BLOCKS_BLOCK_RECORD_H_
#define PANDO_CORE_BLOCKS_BLOCK_RECORD_H_

#include <cstdint>

#include "core/nodes/steady_index.h"

namespace pando {

// Names a block, or a free slot, within BlockMemory: it combines the number of
// the extent and of the slot in it.
using BlockNumber = uint32_t;
inline constexpr BlockNumber kNoBlock = SteadyIndex::kNone;

enum class BlockState : uint8_t {
  kFree,
  kWritten,   // reserved, and found by its key
  kDetached,  // reserved, but not found by its key any more, so that another
              // session may write the key
  kReady,     // published: immutable
};

// The state of one block. Plain data, which lies in the records of its extent,
// in front of its key. There are millions of records, so each bit counts.
//
// A block has a link to the block before it in a prompt. The link is good while
// that block has the generation that the link remembers; see BlockTable::Link.
struct __attribute__((packed, aligned(4))) BlockRecord {
  // When kReady: the use (BlockTable::use) that touched it last. When being
  // written: the time at which it was reserved or reattached, in milliseconds
  // since the Unix epoch.
  uint64_t stamp : 45 = 0;
  uint64_t generation : 16 = 0;
  uint64_t state : 3 = 0;
  uint64_t locks : 24 = 0;
  uint64_t followers : 24 = 0;  // blocks whose link to this one is good
  uint64_t previous_generation : 16 = 0;
  // The block before it; in a free slot, the next free slot.
  uint32_t previous = kNoBlock;

  BlockState block_state() const { return static_cast<BlockState>(state); }
  void set_state(BlockState value) { state = static_cast<uint64_t>(value); }
  bool is_written() const {
    return block_state() == BlockState::kWritten ||
           block_state() == BlockState::kDetached;
  }
  // Whether it may be evicted: it is ready, not locked, and no block follows
  // it.
  bool is_leaf() const {
    return block_state() == BlockState::kReady && locks == 0 && followers == 0;
  }

  static constexpr uint32_t kMaxCount = (1u << 24) - 1;  // locks, followers
};
static_assert(sizeof(BlockRecord) == 20);

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_RECORD_H_
