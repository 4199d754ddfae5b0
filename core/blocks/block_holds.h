#ifndef PANDO_CORE_BLOCKS_BLOCK_HOLDS_H_
#define PANDO_CORE_BLOCKS_BLOCK_HOLDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "core/blocks/block_table.h"
#include "core/blocks/kind_table.h"
#include "core/nodes/slab.h"
#include "core/nodes/steady_index.h"

namespace pando {

struct BlockHold;

// The kinds and holds of one session. Part of a Session and, once that is lost,
// of its batch in Quarantine; BlockHolds keeps it.
struct BlockOwner {
  SessionNumber number;
  OpenKindList kinds;
  BlockHold* first = nullptr;
  uint32_t locked = 0;    // blocks, each as often as it is locked
  uint32_t reserved = 0;  // blocks
  uint64_t bytes = 0;     // of memory that its holds take
  // The next hold that DetachAll looks at, once it has begun.
  std::optional<BlockHold*> next_to_detach = {};

  bool holds_anything() const { return first != nullptr; }
};

// A lock or a reservation: the answer of the call that took it. Plain data,
// owned by BlockHolds.
struct BlockHold {
  // Locks and reservations have ids of their own.
  struct Name {
    bool is_reservation = false;
    uint64_t id = 0;

    friend bool operator==(const Name&, const Name&) = default;
  };

  BlockOwner* owner = nullptr;
  Name name;
  // The call that fills it, in steps; 0: it is whole. Another call with its
  // name takes it over.
  uint64_t filled_by = 0;
  uint64_t request_hash = 0;  // of that call: a repeat asks for the same
  // It has begun to end; the places that it still has are the first ones.
  bool is_ending = false;
  // An answer for each key; of a lock each place is a block that it locks, of a
  // reservation one that is to be written.
  std::vector<BlockPlace> places;
  uint32_t left = 0;  // how many of them are places
  uint32_t detached =
      0;  // the first places whose blocks are not found any more
  // The neighbours in the list of the owner.
  BlockHold* next = nullptr;
  BlockHold* previous = nullptr;

  bool is_whole() const { return filled_by == 0 && !is_ending; }
};

// Who has locked and reserved which blocks. Keeps BlockTable in step.
//
// Releasing is cut into parts by an amount of work: a unit is a block. It is
// taken off `work`; a call returns false when that is used up before it is
// done.
//
// Owned by CacheParts; not thread-safe.
class BlockHolds {
 public:
  explicit BlockHolds(BlockTable* blocks) : blocks_(blocks) {}  // outlives this

  // Null: the owner has none of this name.
  BlockHold* Find(const BlockOwner& owner, const BlockHold::Name& name) const;
  // Names a hold, and none that comes after it under its name; never 0.
  static uint64_t HandleOf(const BlockHold& hold) {
    return Slab<BlockHold>::HandleOf(hold);
  }
  // One that holds nothing yet, for the answers to `keys` keys. REQUIRES: the
  // owner has none of this name.
  BlockHold& Add(BlockOwner& owner, const BlockHold::Name& name, size_t keys);
  // REQUIRES: it has no places left.
  void Erase(BlockHold& hold);
  // The memory that Add counts for so many keys.
  static uint64_t BytesOf(size_t keys);

  // Names a call that fills a hold.
  uint64_t NextCall() { return ++last_call_; }
  // The next answer of a hold. With a place the block is locked, or reserved,
  // already.
  void Append(BlockHold& hold, BlockPlace place);
  // Publishes or gives back the block of one answer, if it is still to be
  // written; returns whether it was. The hold is not erased.
  bool Publish(BlockHold& hold, size_t index);
  bool Discard(BlockHold& hold, size_t index);
  // Before one of these, so that many take less time.
  void PrefetchEnd(const BlockHold& hold, size_t index,
                   bool is_published) const {
    const BlockPlace place = hold.places[index];
    if (!IsPlace(place)) return;
    blocks_->PrefetchEnd(blocks_->memory().NumberOf(place), is_published);
  }

  // Gives up all that is left, and erases the hold.
  bool GiveUpAll(BlockHold& hold, uint32_t& work);
  // The same; from the first part on the call that fills it finds it no more.
  bool Release(BlockHold& hold, uint32_t& work);
  bool ReleaseAll(BlockOwner& owner, uint32_t& work);
  // The blocks that it was to write are not found any more, and stay as they
  // are: a process of the owner, which has ended, may still write to them.
  bool DetachAll(BlockOwner& owner, uint32_t& work);

  uint32_t lock_count() const { return holds_.size() - reservations_; }
  uint32_t reservation_count() const { return reservations_; }
  // Visits the holds in the cells from `begin` to `end`.
  template <typename F>
  void ForEach(uint32_t begin, uint32_t end, F&& visit) const {
    for (uint32_t cell = begin; cell < end; ++cell) {
      if (const BlockHold* const hold = holds_.FindAt(cell)) visit(*hold);
    }
  }
  uint32_t cells() const { return holds_.cells(); }

 private:
  static uint64_t HashOf(const BlockOwner& owner, const BlockHold::Name& name);
  // Gives up the block of a place.
  void GiveUp(BlockHold& hold, BlockPlace place);

  BlockTable* const blocks_;
  Slab<BlockHold> holds_;
  SteadyIndex by_name_;  // cells of holds
  uint32_t reservations_ = 0;
  uint64_t last_call_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_HOLDS_H_
