#include "tiers/blocks/block_index.h"

#include "absl/hash/hash.h"
#include "base/check.h"

namespace pando {

uint32_t BlockIndex::Find(const BlockName& name) const {
  const auto kind = kind_named_.find(name.kind);
  if (kind == kind_named_.end()) return kNone;
  return by_name_.Find(absl::HashOf(name), [&](uint32_t slot) {
    return At(slot).kind == kind->second && At(slot).key == name.key;
  });
}

uint32_t BlockIndex::FindStored(const BlockName& name) const {
  const uint32_t slot = Find(name);
  return slot != kNone && At(slot).is_stored ? slot : kNone;
}

bool BlockIndex::Has(const BlockName& name) const {
  return FindStored(name) != kNone;
}

bool BlockIndex::HasRoom(uint64_t bytes) const {
  return used_slots_ < max_blocks_ && bytes <= max_bytes_ &&
         used_bytes() <= max_bytes_ - bytes;
}

bool BlockIndex::EvictOldest(std::vector<BlockName>& evicted) {
  if (oldest_ == kNone) return false;
  const Slot& slot = At(oldest_);
  if (!kinds_[slot.kind].is_forgotten) evicted.push_back(NameOf(slot));
  Remove(oldest_);
  return true;
}

uint32_t BlockIndex::KindNamed(uint64_t name) {
  const auto [named, is_new] = kind_named_.try_emplace(name, kNone);
  if (!is_new) return named->second;
  if (free_kinds_.empty()) {
    free_kinds_.push_back(static_cast<uint32_t>(kinds_.size()));
    kinds_.emplace_back();
  }
  const uint32_t kind = free_kinds_.back();
  free_kinds_.pop_back();
  kinds_[kind] = {.name = name};
  return named->second = kind;
}

uint32_t BlockIndex::TakeFreeSlot() {
  if (free_ == kNone) {
    const auto first = static_cast<uint32_t>(slots_.size()) * kSlotsOfSweep;
    slots_.push_back(std::make_unique<Slots>());
    for (uint32_t i = kSlotsOfSweep; i-- > 0;) {
      At(first + i).older = free_;
      free_ = first + i;
    }
  }
  const uint32_t slot = free_;
  free_ = At(slot).older;
  ++used_slots_;
  return slot;
}

void BlockIndex::BeginStore(const BlockName& name, uint64_t bytes) {
  CHECK(HasRoom(bytes) && !Knows(name));
  const uint32_t kind = KindNamed(name.kind);
  const uint32_t slot = TakeFreeSlot();
  At(slot) = {.key = name.key, .bytes = bytes, .kind = kind};
  by_name_.Add(absl::HashOf(name), slot);
  ++kinds_[kind].slots;
  kinds_[kind].bytes += bytes;
  used_bytes_ += bytes;
}

bool BlockIndex::EndStore(const BlockName& name, bool is_written) {
  const uint32_t slot = Find(name);
  if (slot == kNone) return false;
  if (!is_written) {
    Remove(slot);
    return false;
  }
  At(slot).is_stored = true;
  Link(slot);
  ++kinds_[At(slot).kind].stored;
  ++count_;
  return true;
}

void BlockIndex::Touch(const BlockName& name) {
  const uint32_t slot = FindStored(name);
  if (slot == kNone) return;
  Unlink(At(slot));
  Link(slot);
}

void BlockIndex::Forget(const BlockName& name) {
  const uint32_t slot = FindStored(name);
  if (slot != kNone) Remove(slot);
}

uint64_t BlockIndex::ForgetKind(uint64_t name) {
  const auto named = kind_named_.find(name);
  if (named == kind_named_.end()) return 0;
  KindOfSlots& kind = kinds_[named->second];
  kind_named_.erase(named);
  kind.is_forgotten = true;
  forgotten_slots_ += kind.slots;
  count_ -= kind.stored;
  used_bytes_ -= kind.bytes;
  erased_bytes_ += kind.bytes;
  return kind.bytes;
}

bool BlockIndex::SweepSome() {
  const uint32_t first = next_swept_;
  for (uint32_t i = 0; i < kSlotsOfSweep && forgotten_slots_ > 0; ++i) {
    const Slot& slot = At(first + i);
    if (slot.kind != kNone && kinds_[slot.kind].is_forgotten) Remove(first + i);
  }
  next_swept_ += kSlotsOfSweep;
  if (next_swept_ >= slots_.size() * kSlotsOfSweep) next_swept_ = 0;
  return forgotten_slots_ > 0;
}

void BlockIndex::Link(uint32_t slot) {
  At(slot).older = newest_;
  At(slot).newer = kNone;
  (newest_ == kNone ? oldest_ : At(newest_).newer) = slot;
  newest_ = slot;
}

void BlockIndex::Unlink(const Slot& slot) {
  (slot.older == kNone ? oldest_ : At(slot.older).newer) = slot.newer;
  (slot.newer == kNone ? newest_ : At(slot.newer).older) = slot.older;
}

void BlockIndex::Remove(uint32_t number) {
  Slot& slot = At(number);
  const uint32_t number_of_kind = slot.kind;
  KindOfSlots& kind = kinds_[number_of_kind];
  by_name_.Remove(absl::HashOf(NameOf(slot)), number);
  if (slot.is_stored) Unlink(slot);
  if (kind.is_forgotten) {
    --forgotten_slots_;
  } else {
    used_bytes_ -= slot.bytes;
    count_ -= slot.is_stored ? 1 : 0;
  }
  kind.bytes -= slot.bytes;
  kind.stored -= slot.is_stored ? 1 : 0;
  slot = {.older = free_};
  free_ = number;
  --used_slots_;
  if (--kind.slots > 0) return;
  if (!kind.is_forgotten) kind_named_.erase(kind.name);
  free_kinds_.push_back(number_of_kind);
}

uint64_t BlockIndex::bytes() const {
  return slots_.size() * sizeof(Slots) + by_name_.bytes() +
         kinds_.size() * (sizeof(KindOfSlots) + 4 * sizeof(uint64_t));
}

}  // namespace pando
