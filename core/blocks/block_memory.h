#ifndef PANDO_CORE_BLOCKS_BLOCK_MEMORY_H_
#define PANDO_CORE_BLOCKS_BLOCK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "core/blocks/block_ledger.h"
#include "core/blocks/block_record.h"
#include "core/blocks/kind.h"
#include "core/requests/block_requests.h"

namespace pando {

// An extent: a piece of the block memory, which is cut into slots of one size
// while a kind has it. Everything here can be computed from its facts and
// records in the ledger. Plain data, owned by BlockMemory.
struct Extent {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  Kind* kind = nullptr;  // null: it is free
  // The records of its slots, in the ledger.
  std::byte* records = nullptr;
  // The first of its free slots that were used before; they form a list.
  uint32_t first_free = kNone;
  uint32_t blocks = 0;
  uint32_t held = 0;      // those of `blocks` that are locked or being written
  uint32_t position = 0;  // in Kind::extents; or the next free extent
  uint32_t room_position = kNone;  // in Kind::with_room; kNone: no free slot
};

// The block memory: it is cut into extents, which kinds take and fill with
// blocks. This class only knows numbers and records; the bytes of blocks are
// elsewhere.
//
// Owned by BlockTable; not thread-safe. Each call is O(1).
//
// Invariants: an extent is free or in the list of one kind; one of a kind has
// at least one block, and is in the kind's list of those with room as long as a
// slot is free; each of its slots is a block or in its list of free ones.
class BlockMemory {
 public:
  // `ledger` outlives this.
  BlockMemory(const BlockOptions& options, BlockLedger* ledger);

  // Gives each extent to the kind that has it according to the ledger, and
  // finds its blocks and free slots. No block is held yet. `kind_of` returns
  // the kind of a number, or null. REQUIRES: no extent has a kind.
  template <typename F>
  void Recover(F&& kind_of);

  // How many blocks of `block_bytes` bytes fit into an extent.
  uint64_t SlotsFor(uint64_t block_bytes) const {
    return extent_bytes_ / block_bytes;
  }

  Extent& ExtentOf(BlockNumber block) { return extents_[block >> slot_bits_]; }
  const Extent& ExtentOf(BlockNumber block) const {
    return extents_[block >> slot_bits_];
  }
  BlockRecord& At(BlockNumber block) const {
    const Extent& extent = ExtentOf(block);
    return *reinterpret_cast<BlockRecord*>(
        extent.records + size_t{extent.kind->record_bytes} * SlotOf(block));
  }
  std::string_view KeyOf(BlockNumber block) const {
    return {KeyBytes(block), ExtentOf(block).kind->key_bytes()};
  }
  uint32_t ExtentNumberOf(BlockNumber block) const {
    return block >> slot_bits_;
  }
  uint32_t used_slots(uint32_t extent) const {
    return ledger_->extent(extent).used_slots;
  }
  // Whether the slot was used since the kind got the extent. Only such a slot
  // has a valid record.
  bool IsUsed(BlockNumber block) const {
    return SlotOf(block) < used_slots(ExtentNumberOf(block));
  }
  void Prefetch(BlockNumber block) const {
    const Extent& extent = ExtentOf(block);
    const std::byte* const record =
        extent.records + size_t{extent.kind->record_bytes} * SlotOf(block);
    __builtin_prefetch(record);
    __builtin_prefetch(record + sizeof(BlockRecord) + 16);
  }

  // The place of a block, and the block at a place.
  BlockPlace PlaceOf(BlockNumber block) const {
    return BlockPlace(((block >> slot_bits_) << slot_bits_) +
                      SlotOf(block) * ExtentOf(block).kind->block_places);
  }
  // REQUIRES: PlaceOf gave it for a block that is still there.
  BlockNumber NumberOf(BlockPlace place) const {
    const uint32_t first = (place.value() >> slot_bits_) << slot_bits_;
    return first + (place.value() - first) / ExtentOf(first).kind->block_places;
  }
  BlockNumber NumberIn(uint32_t extent, uint32_t slot) const {
    return (extent << slot_bits_) | slot;
  }

  bool HasRoom(const Kind& kind) const {
    return !kind.with_room.empty() ||
           (free_extents_ > 0 && kind.share->MayGrow());
  }
  // Takes a slot for a new block of the kind and makes a fresh record with
  // `key`. REQUIRES: an extent of the kind has room, or an extent is free.
  BlockNumber Take(Kind& kind, std::string_view key);
  // Frees the slot of a block. When the last block of an extent goes, the
  // extent becomes free, too.
  void Free(BlockNumber block);
  // Frees all slots of an extent at once.
  void FreeExtent(uint32_t extent);
  // Advances the generation of the extent and returns it. When a block is given
  // it, all links to that block become bad.
  uint16_t NextGeneration(uint32_t extent) {
    return ++ledger_->extent(extent).generation;
  }

  uint64_t memory_bytes() const { return memory_bytes_; }
  uint64_t extent_bytes() const { return extent_bytes_; }
  uint32_t extent_count() const {
    return static_cast<uint32_t>(extents_.size());
  }
  uint32_t free_extent_count() const { return free_extents_; }
  const Extent& extent(uint32_t number) const { return extents_[number]; }
  // The bytes that extents take beside their blocks, mostly records. Records of
  // free extents count, too, because their memory is not given back.
  uint64_t record_bytes() const;

 private:
  uint32_t SlotOf(BlockNumber block) const {
    return block & ((uint32_t{1} << slot_bits_) - 1);
  }
  char* KeyBytes(BlockNumber block) const {
    return reinterpret_cast<char*>(&At(block)) + sizeof(BlockRecord);
  }
  void GiveExtent(Kind& kind);
  void AddExtent(Kind& kind, uint32_t number);
  void RemoveExtent(uint32_t number);
  void AddToFree(uint32_t number);
  // Lists the free slots of an extent and counts its blocks.
  void FindBlocks(uint32_t number);
  void AddToRoom(Extent& extent, uint32_t number);
  void RemoveFromRoom(Extent& extent);

  const uint64_t memory_bytes_;
  const uint64_t extent_bytes_;
  // How many low bits of a block number are its slot: an extent has at most
  // 2^slot_bits_ slots.
  const int slot_bits_;
  BlockLedger* const ledger_;
  std::vector<Extent> extents_;
  uint64_t touched_bytes_ = 0;  // the sum of ExtentFacts::touched_bytes
  uint32_t first_free_ = Extent::kNone;
  uint32_t free_extents_ = 0;
};

template <typename F>
void BlockMemory::Recover(F&& kind_of) {
  first_free_ = Extent::kNone;
  free_extents_ = 0;
  for (uint32_t number = extent_count(); number-- > 0;) {
    Kind* const kind = kind_of(KindNumber(ledger_->extent(number).kind));
    if (kind == nullptr) {
      // The ledger no longer has a kind of this number, which may be given to
      // another kind later.
      ledger_->extent(number).kind = 0;
      AddToFree(number);
      continue;
    }
    AddExtent(*kind, number);
    FindBlocks(number);
    if (extents_[number].blocks == 0) FreeExtent(number);
  }
}

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_MEMORY_H_
