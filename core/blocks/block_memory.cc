#include "core/blocks/block_memory.h"

#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace pando {

BlockMemory::BlockMemory(const BlockOptions& options)
    : memory_bytes_(options.memory_bytes),
      extent_bytes_(options.extent_bytes),
      slot_bits_(std::countr_zero(extent_bytes_ / kPlaceBytes)),
      extents_(memory_bytes_ / extent_bytes_) {
  CHECK(std::has_single_bit(extent_bytes_) && extent_bytes_ >= kPlaceBytes);
  CHECK(memory_bytes_ / kPlaceBytes <= kNotLookedAt.value());
  free_extents_ = extent_count();
  for (uint32_t i = free_extents_; i-- > 0;) {
    extents_[i].position = first_free_;
    first_free_ = i;
  }
}

BlockNumber BlockMemory::Take(Kind& kind, std::string_view key) {
  if (kind.with_room.empty()) GiveExtent(kind);
  const uint32_t number = kind.with_room.back();
  Extent& extent = extents_[number];
  uint32_t slot = extent.first_free;
  if (slot != Extent::kNone) {
    extent.first_free = At(NumberIn(number, slot)).previous;
  } else {
    slot = extent.used_slots++;
  }
  if (++extent.blocks == kind.slots) RemoveFromRoom(extent);
  const BlockNumber block = NumberIn(number, slot);
  BlockRecord& record = *std::construct_at(&At(block));
  record.generation = extent.generation;
  std::memcpy(KeyBytes(block), key.data(), key.size());
  return block;
}

bool BlockMemory::Free(BlockNumber block) {
  const uint32_t number = block >> slot_bits_;
  Extent& extent = extents_[number];
  if (extent.blocks == 1) return FreeExtent(number);
  BlockRecord& record = At(block);
  record.set_state(BlockState::kFree);
  record.previous = extent.first_free;
  extent.first_free = SlotOf(block);
  --extent.blocks;
  if (extent.room_position == Extent::kNone) AddToRoom(extent, number);
  return false;
}

bool BlockMemory::FreeExtent(uint32_t number) {
  Extent& extent = extents_[number];
  Kind& kind = *extent.kind;
  if (extent.room_position != Extent::kNone) RemoveFromRoom(extent);
  const uint32_t last = kind.extents.back();
  extents_[last].position = extent.position;
  kind.extents[extent.position] = last;
  kind.extents.pop_back();
  extent.kind = nullptr;
  extent.records.reset();
  extent.used_slots = 0;
  extent.first_free = Extent::kNone;
  extent.blocks = 0;
  extent.held = 0;
  NextGeneration(extent);
  extent.position = std::exchange(first_free_, number);
  ++free_extents_;
  return kind.extents.empty();
}

void BlockMemory::GiveExtent(Kind& kind) {
  CHECK(free_extents_ > 0);
  --free_extents_;
  const uint32_t number = first_free_;
  Extent& extent = extents_[number];
  first_free_ = extent.position;
  extent.kind = &kind;
  extent.records = std::make_unique_for_overwrite<std::byte[]>(
      size_t{kind.slots} * kind.record_bytes);
  extent.position = static_cast<uint32_t>(kind.extents.size());
  kind.extents.push_back(number);
  AddToRoom(extent, number);
}

void BlockMemory::AddToRoom(Extent& extent, uint32_t number) {
  extent.room_position = static_cast<uint32_t>(extent.kind->with_room.size());
  extent.kind->with_room.push_back(number);
}

void BlockMemory::RemoveFromRoom(Extent& extent) {
  std::vector<uint32_t>& with_room = extent.kind->with_room;
  const uint32_t last = with_room.back();
  with_room[extent.room_position] = last;
  extents_[last].room_position = extent.room_position;
  with_room.pop_back();
  extent.room_position = Extent::kNone;
}

}  // namespace pando
