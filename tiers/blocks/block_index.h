#ifndef PANDO_TIERS_BLOCKS_BLOCK_INDEX_H_
#define PANDO_TIERS_BLOCKS_BLOCK_INDEX_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/nodes/page_hash.h"
#include "core/nodes/steady_index.h"
#include "tiers/blocks/block_name.h"

namespace pando {

// Knows which blocks a tier has and how many bytes they take, but not their
// contents. Room is made by evicting the least recently used block, of whatever
// kind. Blocks of different sizes share the room.
//
// A block takes about kBytesOfBlock bytes of memory. The index grows with the
// number of blocks, and never shrinks.
//
// Owned by KeptBlocks, which guards it; not thread-safe. Every call is O(1), or
// O(log kinds), also while the index grows.
//
// Invariants: the bytes of all blocks, those that are being written and the
// files of forgotten kinds included, are at most max_bytes; there are at most
// max_blocks slots in use; a block that is being written is not found.
class BlockIndex {
 public:
  BlockIndex(uint64_t max_bytes, uint64_t max_blocks)
      : max_bytes_(max_bytes), max_blocks_(max_blocks) {}

  // Returns whether the tier has the block, so that it can be loaded.
  bool Has(const BlockName& name) const;
  // Returns whether the tier has the block, or is writing it.
  bool Knows(const BlockName& name) const { return Find(name) != kNone; }
  // Returns whether a block of `bytes` bytes can be added without an eviction.
  bool HasRoom(uint64_t bytes) const;
  // Takes out the least recently used block, and appends it to `evicted` unless
  // its kind was forgotten. Returns false if there is no block to take out.
  bool EvictOldest(std::vector<BlockName>& evicted);
  // Says that a block is about to be written. REQUIRES: HasRoom(bytes), and not
  // Knows(name).
  void BeginStore(const BlockName& name, uint64_t bytes);
  // Ends the write of a block. Returns whether the block is found from now on:
  // whether it was written, and its kind was not forgotten meanwhile.
  bool EndStore(const BlockName& name, bool is_written);
  // Counts as a use of a block.
  void Touch(const BlockName& name);
  // Takes out a block that is stored.
  void Forget(const BlockName& name);

  // Forgets a kind: none of its blocks is found any more, nor are those that
  // are being written. Returns how many bytes its files take. They count as
  // used until Freed is called for them.
  uint64_t ForgetKind(uint64_t kind);
  // Says that files of forgotten kinds have freed `bytes` bytes.
  void Freed(uint64_t bytes) { erased_bytes_ -= bytes; }
  // Frees the slots of forgotten kinds among the next kSlotsOfSweep slots.
  // Returns whether there are more.
  bool SweepSome();

  uint64_t max_bytes() const { return max_bytes_; }
  uint64_t max_blocks() const { return max_blocks_; }
  uint64_t used_bytes() const { return used_bytes_ + erased_bytes_; }
  uint64_t count() const { return count_; }
  // The memory that the index itself takes.
  uint64_t bytes() const;

  static constexpr uint32_t kSlotsOfSweep = 1'024;
  // A block takes a slot, and a cell of a hash table that is two thirds full.
  static constexpr uint64_t kSlotBytes = 56;
  static constexpr uint64_t kBytesOfBlock = kSlotBytes + 12;

 private:
  static constexpr uint32_t kNone = SteadyIndex::kNone;

  struct Slot {
    PageHash key = {};
    uint64_t bytes = 0;
    uint32_t kind = kNone;  // of kinds_; kNone: the slot is free
    uint32_t older =
        kNone;  // in the order of use, if stored; the next free slot
    uint32_t newer = kNone;
    bool is_stored = false;
  };
  static_assert(sizeof(Slot) == kSlotBytes);
  using Slots = std::array<Slot, kSlotsOfSweep>;
  struct KindOfSlots {
    uint64_t name = 0;
    uint64_t bytes = 0;
    uint64_t slots = 0;
    uint64_t stored = 0;  // slots with stored blocks
    bool is_forgotten = false;
  };

  Slot& At(uint32_t slot) const {
    return (*slots_[slot / kSlotsOfSweep])[slot % kSlotsOfSweep];
  }
  BlockName NameOf(const Slot& slot) const {
    return {kinds_[slot.kind].name, slot.key};
  }
  uint32_t Find(const BlockName& name) const;
  uint32_t FindStored(const BlockName& name) const;
  uint32_t KindNamed(uint64_t name);  // makes the kind if it is new
  uint32_t TakeFreeSlot();
  void Link(uint32_t slot);  // as the newest
  void Unlink(const Slot& slot);
  void Remove(uint32_t slot);

  const uint64_t max_bytes_;
  const uint64_t max_blocks_;
  std::vector<std::unique_ptr<Slots>> slots_;
  SteadyIndex by_name_;  // numbers of slots
  uint32_t free_ = kNone;
  uint32_t oldest_ = kNone;
  uint32_t newest_ = kNone;
  uint32_t next_swept_ = 0;
  std::deque<KindOfSlots> kinds_;
  std::vector<uint32_t> free_kinds_;
  absl::btree_map<uint64_t, uint32_t> kind_named_;  // not the forgotten ones
  uint64_t used_slots_ = 0;
  uint64_t forgotten_slots_ = 0;
  uint64_t used_bytes_ = 0;    // of kinds that are not forgotten
  uint64_t erased_bytes_ = 0;  // of those that are
  uint64_t count_ = 0;         // of blocks that are found
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_INDEX_H_
