#include "core/operators/block_check.h"

#include <algorithm>

#include "core/nodes/step_sizes.h"

namespace pando {

bool BlockCheck::Step(const CacheParts& parts,
                      std::vector<std::string>& violations) {
  violations_ = &violations;
  if (next_extent_ == 0 && next_hold_ == 0) changes_ = parts.blocks.changes();
  const BlockMemory& memory = parts.blocks.memory();
  for (uint32_t slots = 0; next_extent_ < memory.extent_count();) {
    if (slots >= kStepCells) return false;
    slots += 1 + memory.used_slots(next_extent_);
    CheckExtent(parts, next_extent_++);
  }
  for (uint64_t places = 0; next_hold_ < parts.block_holds.cells();) {
    if (places >= kStepCells) return false;
    parts.block_holds.ForEach(next_hold_, next_hold_ + 1,
                              [&](const BlockHold& hold) {
                                places += hold.places.size();
                                CheckHold(parts.blocks, hold);
                              });
    ++places;
    ++next_hold_;
  }
  if (changes_ == parts.blocks.changes()) CheckTotals(parts);
  return true;
}

void BlockCheck::CheckExtent(const CacheParts& parts, uint32_t number) {
  const BlockTable& blocks = parts.blocks;
  const BlockMemory& memory = blocks.memory();
  const Extent& extent = memory.extent(number);
  if (extent.kind == nullptr) {
    ++free_extents_;
    return;
  }
  const Kind& kind = *extent.kind;
  Expect(blocks.kinds().Find(kind.info.number) == &kind,
         "blocks: an extent belongs to a kind that is gone");
  Expect(extent.position < kind.extents.size() &&
             kind.extents[extent.position] == number,
         "blocks: an extent is not in the list of its kind");
  const bool has_room = extent.room_position != Extent::kNone;
  Expect(has_room == (extent.blocks < kind.slots) &&
             (!has_room || (extent.room_position < kind.with_room.size() &&
                            kind.with_room[extent.room_position] == number)),
         "blocks: an extent with room is not in the list of these");
  const uint32_t used_slots = memory.used_slots(number);
  uint32_t used = 0;
  uint32_t held = 0;
  for (uint32_t slot = 0; slot < used_slots; ++slot) {
    const BlockNumber block = memory.NumberIn(number, slot);
    const BlockRecord& record = blocks.At(block);
    if (record.block_state() == BlockState::kFree) continue;
    ++used;
    if (record.is_written() || record.locks > 0) ++held;
    CheckBlock(blocks, block, by_kind_[kind.info.number]);
  }
  Expect(used > 0 && used == extent.blocks,
         "blocks: an extent has another number of blocks");
  Expect(held == extent.held,
         "blocks: an extent has another number of blocks that are held");
  uint32_t free = 0;
  for (uint32_t slot = extent.first_free;
       slot != Extent::kNone && free <= used_slots; ++free) {
    slot = blocks.At(memory.NumberIn(number, slot)).previous;
  }
  Expect(free == used_slots - used,
         "blocks: a free slot is not in the list of these");
}

void BlockCheck::CheckBlock(const BlockTable& blocks, BlockNumber block,
                            Sums& sums) {
  const BlockRecord& record = blocks.At(block);
  const Kind& kind = *blocks.memory().ExtentOf(block).kind;
  const bool is_ready = record.block_state() == BlockState::kReady;
  sums.ready += is_ready ? 1 : 0;
  sums.written += is_ready ? 0 : 1;
  sums.locked += record.locks > 0 ? 1 : 0;
  locks_of_blocks_ += record.locks;
  Expect(is_ready || record.locks == 0,
         "blocks: one that is being written is locked");
  if (kind.has_ended()) return;
  const bool is_found =
      blocks.Find(kind, blocks.memory().KeyOf(block)) == block;
  Expect(is_found == (record.block_state() != BlockState::kDetached),
         "blocks: one is not found by its key, or should not be");
  const bool is_leaf = kind.index->leaves.contains({record.stamp, block});
  Expect(is_leaf == record.is_leaf(),
         "blocks: the order of eviction lacks a leaf, or has another block");
  sums.found += is_found ? 1 : 0;
  sums.leaves += is_leaf ? 1 : 0;
  sums.followers += record.followers;
  sums.links += blocks.PreviousOf(kind, record) != kNoBlock ? 1 : 0;
}

void BlockCheck::CheckHold(const BlockTable& blocks, const BlockHold& hold) {
  uint32_t left = 0;
  for (BlockPlace place : hold.places) {
    if (!IsPlace(place)) continue;
    ++left;
    const BlockRecord& record = blocks.At(blocks.memory().NumberOf(place));
    Expect(hold.name.is_reservation
               ? record.is_written()
               : record.block_state() == BlockState::kReady && record.locks > 0,
           "blocks: a lock or reservation names a block that it has not");
  }
  Expect(left == hold.left,
         "blocks: a lock or reservation has another number of blocks");
  (hold.name.is_reservation ? written_by_holds_ : locks_of_holds_) += left;
}

void BlockCheck::CheckTotals(const CacheParts& parts) {
  const BlockTable& blocks = parts.blocks;
  uint64_t written = 0;
  absl::flat_hash_map<const QuotaShare*, size_t> extents;
  blocks.kinds().ForEach([&](const Kind& kind) {
    const Sums& sums = by_kind_[kind.info.number];
    written += kind.written;
    extents[kind.share] += kind.extents.size();
    Expect(sums.ready == kind.ready && sums.locked == kind.locked &&
               sums.written == kind.written,
           "blocks: the counts of a kind are wrong");
    if (kind.has_ended()) return;
    Expect(sums.found == kind.index->blocks.size() &&
               sums.leaves == kind.index->leaves.size(),
           "blocks: an index has a block that is gone");
    Expect(sums.followers == sums.links,
           "blocks: followers are counted that there are not");
  });
  blocks.quotas().ForEach([&](const QuotaShare& share) {
    Expect(share.extents == extents[&share],
           "blocks: the extents of a quota are counted wrongly");
  });
  Expect(free_extents_ == blocks.memory().free_extent_count(),
         "blocks: the number of free extents is wrong");
  Expect(locks_of_blocks_ == locks_of_holds_,
         "blocks: one is locked by no lock");
  Expect(written == written_by_holds_,
         "blocks: one that is written is in no reservation");
  uint64_t locked = 0;
  uint64_t reserved = 0;
  const auto count = [&](const BlockOwner& owner) {
    locked += owner.locked;
    reserved += owner.reserved;
  };
  parts.sessions.ForEachSession([&](const Session& s) { count(*s.blocks); });
  parts.sessions.ForEachEnded([&](const Session& s) { count(*s.blocks); });
  const auto quarantined = parts.holdings.quarantine().block_counts();
  const auto released = parts.holdings.released_counts();
  Expect(locked + quarantined.locked + released.locked == locks_of_holds_ &&
             reserved + quarantined.reserved + released.reserved ==
                 written_by_holds_,
         "blocks: what sessions have does not add up");
}

}  // namespace pando
