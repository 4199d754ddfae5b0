#ifndef PANDO_CORE_BLOCKS_BLOCK_MEMORY_H_
#define PANDO_CORE_BLOCKS_BLOCK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "core/blocks/block_record.h"
#include "core/blocks/kind.h"
#include "core/requests/block_requests.h"

namespace pando {

// A piece of the memory, cut into slots of one size while a kind has it. Plain
// data, owned by BlockMemory.
struct Extent {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  Kind* kind = nullptr;  // null: it is free
  std::unique_ptr<std::byte[]> records;
  uint32_t used_slots = 0;      // slots from this one on have never been used
  uint32_t first_free = kNone;  // of the slots before
  uint32_t blocks = 0;          // slots that are not free
  uint32_t held = 0;            // of them, locked or being written
  // Blocks that begin now get this generation. It changes when links to blocks
  // here stop being good.
  uint16_t generation = 0;
  uint32_t position = 0;           // in Kind::extents; or the next free extent
  uint32_t room_position = kNone;  // in Kind::with_room; kNone: no free slot
};

// The block memory, cut into extents, and who has which: kinds take extents and
// fill them with blocks. Deals in numbers; the bytes are elsewhere.
//
// Owned by BlockTable; not thread-safe. Each call is O(1).
//
// Invariants: an extent is free or in the list of one kind; one of a kind has
// at least one block, and is in the kind's list of those with room as long as a
// slot is free; each of its slots is a block or in its list of free ones.
class BlockMemory {
 public:
  explicit BlockMemory(const BlockOptions& options);

  // Slots of an extent for blocks of so many bytes.
  uint64_t SlotsFor(uint64_t block_bytes) const {
    return extent_bytes_ / block_bytes;
  }

  Extent& ExtentOf(BlockNumber block) { return extents_[block >> slot_bits_]; }
  const Extent& ExtentOf(BlockNumber block) const {
    return extents_[block >> slot_bits_];
  }
  BlockRecord& At(BlockNumber block) const {
    const Extent& extent = ExtentOf(block);
    return *reinterpret_cast<BlockRecord*>(extent.records.get() +
                                           size_t{extent.kind->record_bytes} *
                                               SlotOf(block));
  }
  std::string_view KeyOf(BlockNumber block) const {
    return {KeyBytes(block), ExtentOf(block).kind->key_bytes()};
  }
  uint32_t ExtentNumberOf(BlockNumber block) const {
    return block >> slot_bits_;
  }
  // The slot was used since the kind got the extent, so that it has a record.
  bool IsUsed(BlockNumber block) const {
    return SlotOf(block) < ExtentOf(block).used_slots;
  }
  void Prefetch(BlockNumber block) const {
    const Extent& extent = ExtentOf(block);
    const std::byte* const record =
        extent.records.get() +
        size_t{extent.kind->record_bytes} * SlotOf(block);
    __builtin_prefetch(record);
    __builtin_prefetch(record + sizeof(BlockRecord) + 16);
  }

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
    return !kind.with_room.empty() || free_extents_ > 0;
  }
  // A slot for a block of the kind, with a fresh record. REQUIRES: HasRoom.
  BlockNumber Take(Kind& kind, std::string_view key);
  // The slot is free; with the last block of its extent, so is that. Returns
  // whether the kind lost its last extent.
  bool Free(BlockNumber block);
  // Frees all slots of an extent at once. Returns the same.
  bool FreeExtent(uint32_t extent);
  // Links to blocks of the extent that end now are not good any more.
  static uint16_t NextGeneration(Extent& extent) { return ++extent.generation; }

  uint64_t memory_bytes() const { return memory_bytes_; }
  uint64_t extent_bytes() const { return extent_bytes_; }
  uint32_t extent_count() const {
    return static_cast<uint32_t>(extents_.size());
  }
  uint32_t free_extent_count() const { return free_extents_; }
  const Extent& extent(uint32_t number) const { return extents_[number]; }

 private:
  uint32_t SlotOf(BlockNumber block) const {
    return block & ((uint32_t{1} << slot_bits_) - 1);
  }
  char* KeyBytes(BlockNumber block) const {
    return reinterpret_cast<char*>(&At(block)) + sizeof(BlockRecord);
  }
  void GiveExtent(Kind& kind);
  void AddToRoom(Extent& extent, uint32_t number);
  void RemoveFromRoom(Extent& extent);

  const uint64_t memory_bytes_;
  const uint64_t extent_bytes_;
  const int
      slot_bits_;  // of a number: an extent has at most 2^slot_bits_ slots
  std::vector<Extent> extents_;
  uint32_t first_free_ = Extent::kNone;
  uint32_t free_extents_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_MEMORY_H_
