// The functions of BlockTable that make room.

#include <algorithm>
#include <array>
#include <utility>

#include "core/blocks/block_table.h"

namespace pando {
namespace {

// When an extent moves, warm blocks in it are lost. So it moves only if the
// other kind's coldest leaf is more than twice as old, unless a floor demands
// it.
constexpr uint64_t IsMuchOlder(uint64_t age, uint64_t than) {
  return age > 2 * than;
}

// Before an extent is taken, so many extents are compared: those of the coldest
// leaves. The search ends after so many leaves or so many records.
constexpr size_t kComparedExtents = 8;
constexpr size_t kLookedAtLeaves = 64;
constexpr size_t kLookedAtRecords = 16'384;
// How many of the coldest kinds are examined for an extent.
constexpr size_t kAskedKinds = 4;
// How many extents of kinds that have ended are freed before any other block is
// evicted.
constexpr uint32_t kFreedExtents = 16;

}  // namespace

bool BlockTable::MakeRoom(Kind& kind) {
  if (memory_.HasRoom(kind)) return true;
  if (kinds_.NextEnded() != nullptr) {
    // No call finds their blocks, but they still count for their quotas.
    uint32_t work = kFreedExtents;
    FreeEnded(work);
    if (memory_.HasRoom(kind)) return true;
  }
  if (kind.evictions_before_look > 0 && !kind.share->IsBelowFloor() &&
      EvictLeaf(kind)) {
    --kind.evictions_before_look;
    return true;
  }
  if (TakeExtent(kind, ColdestAge(kind))) return true;
  kind.evictions_before_look = kind.slots / 8;
  return EvictLeaf(kind);
}

std::optional<uint64_t> BlockTable::ColdestAge(const Kind& kind) const {
  if (kind.has_ended() || kind.index->leaves.empty()) return std::nullopt;
  return use_ - kind.index->leaves.begin()->stamp;
}

bool BlockTable::EvictLeaf(Kind& kind) {
  if (kind.index->leaves.empty()) return false;
  const BlockNumber block = kind.index->leaves.begin()->block;
  NoteEviction(kind, block, BlockEviction::kRoom);
  Change(kind, block,
         [](BlockRecord& r) { r.set_state(BlockState::kDetached); });
  Forget(kind, block);
  memory_.Free(block);
  return true;
}

bool BlockTable::MayTake(const Kind& kind, std::optional<uint64_t> age,
                         const Kind& other, uint64_t other_age) {
  if (&other == &kind) return false;
  if (other.share != kind.share) {
    if (!kind.share->MayGrow() || !other.share->MayShrink()) return false;
    if (kind.share->IsBelowFloor()) return true;
  }
  return !age.has_value() || IsMuchOlder(other_age, *age);
}

bool BlockTable::TakeExtent(const Kind& kind, std::optional<uint64_t> age) {
  looks_ += kinds_.size();
  std::vector<std::pair<uint64_t, Kind*>> older;
  kinds_.ForEach([&](Kind& other) {
    const std::optional<uint64_t> other_age = ColdestAge(other);
    if (!other_age.has_value()) return;
    if (!MayTake(kind, age, other, *other_age)) return;
    older.emplace_back(*other_age, &other);
  });
  const size_t asked = std::min(older.size(), kAskedKinds);
  std::partial_sort(older.begin(),
                    older.begin() + static_cast<ptrdiff_t>(asked), older.end(),
                    [](const auto& a, const auto& b) {
                      return std::pair(b.first, a.second->info.number) <
                             std::pair(a.first, b.second->info.number);
                    });
  for (size_t i = 0; i < asked; ++i) {
    const uint64_t middle = (older[i].first + age.value_or(0)) / 2;
    if (TakeExtentFrom(*older[i].second, middle)) return true;
  }
  if (age.has_value() && !kind.share->IsBelowFloor()) return false;
  // The kind has no leaf of its own, or a right to more: any extent is better
  // than none.
  for (const auto& [other_age, other] : older) {
    if (TakeAnyExtentFrom(*other)) return true;
  }
  // Locks on the ends of prompts may leave a kind no leaf at all, even this
  // one.
  bool has_taken = false;
  kinds_.ForEach([&](Kind& other) {
    if (has_taken || other.has_ended() || ColdestAge(other).has_value()) return;
    if (&other != &kind && !MayTake(kind, std::nullopt, other, 0)) return;
    has_taken = TakeAnyExtentFrom(other);
  });
  return has_taken;
}

bool BlockTable::TakeAnyExtentFrom(Kind& victim) {
  looks_ += victim.extents.size();
  for (uint32_t extent : victim.extents) {
    if (memory_.extent(extent).held > 0) continue;
    ++victim.counters.extents_lost;
    EvictExtent(extent);
    return true;
  }
  return false;
}

bool BlockTable::TakeExtentFrom(Kind& victim, uint64_t age) {
  std::array<uint32_t, kComparedExtents> seen;
  size_t seen_count = 0;
  size_t leaves = 0;
  uint32_t best = Extent::kNone;
  uint64_t least = 0;
  for (const Leaf& leaf : victim.index->leaves) {
    if (++leaves > kLookedAtLeaves || seen_count == kComparedExtents ||
        seen_count * victim.slots > kLookedAtRecords) {
      break;
    }
    const uint32_t extent = memory_.ExtentNumberOf(leaf.block);
    const auto end = seen.begin() + static_cast<ptrdiff_t>(seen_count);
    if (std::find(seen.begin(), end, extent) != end) continue;
    seen[seen_count++] = extent;
    if (memory_.extent(extent).held > 0) continue;
    const uint64_t loss = LossOf(extent, age);
    if (best == Extent::kNone || loss < least) {
      best = extent;
      least = loss;
    }
  }
  if (best == Extent::kNone) return false;
  ++victim.counters.extents_lost;
  EvictExtent(best);
  return true;
}

uint64_t BlockTable::LossOf(uint32_t number, uint64_t age) const {
  const Extent& extent = memory_.extent(number);
  uint64_t warm = 0;
  uint64_t links = 0;
  uint64_t own_links = 0;
  const uint32_t used_slots = memory_.used_slots(number);
  for (uint32_t slot = 0; slot < used_slots; ++slot) {
    const BlockRecord& record = At(memory_.NumberIn(number, slot));
    if (record.block_state() != BlockState::kReady) continue;
    if (use_ - record.stamp < age) ++warm;
    links += record.followers;
    const BlockNumber previous = record.previous;
    if (previous != kNoBlock && memory_.ExtentNumberOf(previous) == number &&
        PreviousOf(*extent.kind, record) != kNoBlock) {
      ++own_links;
    }
  }
  return warm + (links - own_links);
}

void BlockTable::EvictExtent(uint32_t number) {
  const Extent& extent = memory_.extent(number);
  Kind& kind = *extent.kind;
  const uint32_t used_slots = memory_.used_slots(number);
  // Blocks are detached before any link is broken, so that blocks which others
  // follow do not become leaves meanwhile.
  for (uint32_t slot = 0; slot < used_slots; ++slot) {
    const BlockNumber block = memory_.NumberIn(number, slot);
    if (At(block).block_state() != BlockState::kReady) continue;
    NoteEviction(kind, block, BlockEviction::kExtent);
    Change(kind, block,
           [](BlockRecord& r) { r.set_state(BlockState::kDetached); });
  }
  for (uint32_t slot = 0; slot < used_slots; ++slot) {
    const BlockNumber block = memory_.NumberIn(number, slot);
    if (At(block).block_state() == BlockState::kDetached) Forget(kind, block);
  }
  memory_.FreeExtent(number);
}

void BlockTable::NoteEviction(Kind& kind, BlockNumber block,
                              BlockEviction reason) {
  --kind.ready;
  ++evictions_;
  ++kind.counters.evicted[static_cast<size_t>(reason)];
  evicted_.Add({kind.info.number.value(), HashOf(memory_.KeyOf(block))}, reason,
               now_);
}

}  // namespace pando
