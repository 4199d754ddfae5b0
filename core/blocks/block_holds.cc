#include "core/blocks/block_holds.h"

#include <utility>

#include "absl/hash/hash.h"

namespace pando {

uint64_t BlockHolds::HashOf(const BlockOwner& owner,
                            const BlockHold::Name& name) {
  return absl::HashOf(&owner, name.is_reservation, name.id);
}

uint64_t BlockHolds::BytesOf(size_t keys) {
  return sizeof(BlockHold) + keys * sizeof(BlockPlace);
}

BlockHold* BlockHolds::Find(const BlockOwner& owner,
                            const BlockHold::Name& name) const {
  const uint32_t cell =
      by_name_.Find(HashOf(owner, name), [&](uint32_t candidate) {
        const BlockHold& hold = *holds_.FindAt(candidate);
        return hold.owner == &owner && hold.name == name;
      });
  return cell == SteadyIndex::kNone ? nullptr : holds_.FindAt(cell);
}

BlockHold& BlockHolds::Add(BlockOwner& owner, const BlockHold::Name& name,
                           size_t keys) {
  BlockHold& hold = holds_.New();
  hold.owner = &owner;
  hold.name = name;
  hold.places.reserve(keys);
  owner.bytes += BytesOf(keys);
  hold.next = owner.first;
  if (hold.next != nullptr) hold.next->previous = &hold;
  owner.first = &hold;
  by_name_.Add(HashOf(owner, name), Slab<BlockHold>::IndexOf(hold));
  if (name.is_reservation) ++reservations_;
  return hold;
}

void BlockHolds::Erase(BlockHold& hold) {
  BlockOwner& owner = *hold.owner;
  owner.bytes -= BytesOf(hold.places.capacity());
  (hold.previous != nullptr ? hold.previous->next : owner.first) = hold.next;
  if (hold.next != nullptr) hold.next->previous = hold.previous;
  by_name_.Remove(HashOf(owner, hold.name), Slab<BlockHold>::IndexOf(hold));
  if (hold.name.is_reservation) --reservations_;
  holds_.Delete(Slab<BlockHold>::HandleOf(hold));
}

void BlockHolds::Append(BlockHold& hold, BlockPlace place) {
  hold.places.push_back(place);
  if (!IsPlace(place)) return;
  ++hold.left;
  ++(hold.name.is_reservation ? hold.owner->reserved : hold.owner->locked);
}

bool BlockHolds::Publish(BlockHold& hold, size_t index) {
  BlockPlace& place = hold.places[index];
  if (!IsPlace(place)) return false;
  blocks_->Publish(blocks_->memory().NumberOf(place));
  place = kReadyBlock;
  --hold.left;
  --hold.owner->reserved;
  return true;
}

bool BlockHolds::Discard(BlockHold& hold, size_t index) {
  BlockPlace& place = hold.places[index];
  if (!IsPlace(place)) return false;
  GiveUp(hold, place);
  place = kMissingBlock;
  return true;
}

void BlockHolds::GiveUp(BlockHold& hold, BlockPlace place) {
  const BlockNumber block = blocks_->memory().NumberOf(place);
  --hold.left;
  if (hold.name.is_reservation) {
    --hold.owner->reserved;
    blocks_->Discard(block);
  } else {
    --hold.owner->locked;
    blocks_->Unlock(block);
  }
}

// It goes from the back: a block is given up before the block that it follows.
bool BlockHolds::GiveUpAll(BlockHold& hold, uint32_t& work) {
  while (hold.left > 0) {
    if (work == 0) return false;
    --work;
    const BlockPlace place = hold.places.back();
    hold.places.pop_back();
    if (IsPlace(place)) GiveUp(hold, place);
  }
  Erase(hold);
  return true;
}

bool BlockHolds::Release(BlockHold& hold, uint32_t& work) {
  hold.is_ending = true;
  return GiveUpAll(hold, work);
}

bool BlockHolds::ReleaseAll(BlockOwner& owner, uint32_t& work) {
  while (owner.first != nullptr) {
    if (work == 0 || !Release(*owner.first, work)) return false;
  }
  return true;
}

bool BlockHolds::DetachAll(BlockOwner& owner, uint32_t& work) {
  if (!owner.next_to_detach.has_value()) owner.next_to_detach = owner.first;
  BlockHold*& hold = *owner.next_to_detach;
  for (; hold != nullptr; hold = hold->next) {
    if (work == 0) return false;
    --work;
    if (!hold->name.is_reservation) continue;
    for (; hold->detached < hold->places.size(); ++hold->detached) {
      if (work == 0) return false;
      --work;
      const BlockPlace place = hold->places[hold->detached];
      if (IsPlace(place)) blocks_->Detach(blocks_->memory().NumberOf(place));
    }
  }
  return true;
}

}  // namespace pando
