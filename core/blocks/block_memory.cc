#include "core/blocks/block_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace pando {

BlockMemory::BlockMemory(const BlockOptions& options, BlockLedger* ledger)
    : memory_bytes_(options.memory_bytes),
      extent_bytes_(options.extent_bytes),
      slot_bits_(std::countr_zero(extent_bytes_ / kPlaceBytes)),
      ledger_(ledger),
      extents_(memory_bytes_ / extent_bytes_) {
  CHECK(std::has_single_bit(extent_bytes_) && extent_bytes_ >= kPlaceBytes);
  CHECK(memory_bytes_ / kPlaceBytes <= kNotLookedAt.value());
  for (uint32_t i = extent_count(); i-- > 0;) {
    extents_[i].records = ledger_->records(i);
    touched_bytes_ += ledger_->extent(i).touched_bytes;
    AddToFree(i);
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
    slot = used_slots(number);
  }
  if (++extent.blocks == kind.slots) RemoveFromRoom(extent);
  const BlockNumber block = NumberIn(number, slot);
  ExtentFacts& facts = ledger_->extent(number);
  BlockRecord& record = *std::construct_at(&At(block));
  record.generation = facts.generation;
  StoresBefore();
  std::memcpy(KeyBytes(block), key.data(), key.size());
  if (slot == facts.used_slots) {
    StoresBefore();
    ++facts.used_slots;
  }
  return block;
}

void BlockMemory::Free(BlockNumber block) {
  const uint32_t number = block >> slot_bits_;
  Extent& extent = extents_[number];
  if (extent.blocks == 1) {
    FreeExtent(number);
    return;
  }
  BlockRecord& record = At(block);
  record.set_state(BlockState::kFree);
  record.previous = extent.first_free;
  extent.first_free = SlotOf(block);
  --extent.blocks;
  if (extent.room_position == Extent::kNone) AddToRoom(extent, number);
}

void BlockMemory::FreeExtent(uint32_t number) {
  Extent& extent = extents_[number];
  ledger_->extent(number).kind = 0;
  StoresBefore();
  if (extent.room_position != Extent::kNone) RemoveFromRoom(extent);
  RemoveExtent(number);
  NextGeneration(number);
  AddToFree(number);
}

void BlockMemory::GiveExtent(Kind& kind) {
  CHECK(free_extents_ > 0);
  --free_extents_;
  const uint32_t number = first_free_;
  first_free_ = extents_[number].position;
  AddExtent(kind, number);
  AddToRoom(extents_[number], number);
  // Records that other kinds left in the extent are not valid any more.
  ExtentFacts& facts = ledger_->extent(number);
  facts.used_slots = 0;
  StoresBefore();
  facts.kind = kind.info.number.value();
}

void BlockMemory::AddExtent(Kind& kind, uint32_t number) {
  Extent& extent = extents_[number];
  extent.kind = &kind;
  extent.position = static_cast<uint32_t>(kind.extents.size());
  kind.extents.push_back(number);
  ++kind.share->extents;
  const uint32_t bytes = kind.slots * kind.record_bytes;
  uint32_t& touched_bytes = ledger_->extent(number).touched_bytes;
  if (bytes <= touched_bytes) return;
  touched_bytes_ += bytes - touched_bytes;
  touched_bytes = bytes;
}

void BlockMemory::RemoveExtent(uint32_t number) {
  Extent& extent = extents_[number];
  --extent.kind->share->extents;
  std::vector<uint32_t>& extents = extent.kind->extents;
  const uint32_t last = extents.back();
  extents_[last].position = extent.position;
  extents[extent.position] = last;
  extents.pop_back();
  extent.kind = nullptr;
  extent.first_free = Extent::kNone;
  extent.blocks = 0;
  extent.held = 0;
}

void BlockMemory::AddToFree(uint32_t number) {
  extents_[number].position = std::exchange(first_free_, number);
  ++free_extents_;
}

void BlockMemory::FindBlocks(uint32_t number) {
  Extent& extent = extents_[number];
  ExtentFacts& facts = ledger_->extent(number);
  facts.used_slots = std::min(facts.used_slots, extent.kind->slots);
  for (uint32_t slot = facts.used_slots; slot-- > 0;) {
    BlockRecord& record = At(NumberIn(number, slot));
    if (record.is_written() || record.block_state() == BlockState::kReady) {
      ++extent.blocks;
      continue;
    }
    record.set_state(BlockState::kFree);
    record.previous = std::exchange(extent.first_free, slot);
  }
  if (extent.blocks < extent.kind->slots) AddToRoom(extent, number);
}

uint64_t BlockMemory::record_bytes() const {
  return extent_count() * (sizeof(Extent) + sizeof(ExtentFacts)) +
         touched_bytes_;
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
