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

// The kinds and holds of one session. It is a part of a Session and, once that
// is lost, of its batch in Quarantine. BlockHolds changes it.
struct BlockOwner {
  SessionNumber number;
  OpenKindList kinds;
  BlockHold* first = nullptr;
  uint32_t locked = 0;    // blocks; each counts once for each lock
  uint32_t reserved = 0;  // blocks
  uint64_t bytes = 0;     // the memory that its holds take
  // The next hold that DetachAll looks at; unset until DetachAll begins.
  std::optional<BlockHold*> next_to_detach = {};

  bool holds_anything() const { return first != nullptr; }
};

// A block lock or a reservation: it stores the answer of the call that took it.
// Plain data, owned by BlockHolds.
struct BlockHold {
  // Locks and reservations have separate ids, so a lock and a reservation may
  // have the same number.
  struct Name {
    bool is_reservation = false;
    uint64_t id = 0;

    friend bool operator==(const Name&, const Name&) = default;
  };

  BlockOwner* owner = nullptr;
  Name name;
  // The number (BlockHolds::NextCall) of the call that is filling this hold in
  // steps; 0 once the hold has all its answers. Another call with the same name
  // releases an unfinished hold and begins a new one.
  uint64_t filled_by = 0;
  uint64_t request_hash =
      0;  // of that call's keys: a repeat must ask for the same
  // Its release has begun. It goes from the back, so the places that are left
  // are the first ones.
  bool is_ending = false;
  // The answer to each key. In a lock, a place is a block that it locks; in a
  // reservation, a block that is still to be written.
  std::vector<BlockPlace> places;
  uint32_t left = 0;  // how many answers are places (IsPlace)
  // DetachAll has detached the blocks of this many answers, from the front.
  uint32_t detached = 0;
  // The neighbours in the owner's list of holds.
  BlockHold* next = nullptr;
  BlockHold* previous = nullptr;

  bool is_whole() const { return filled_by == 0 && !is_ending; }
};

// Knows which session has locked or reserved which blocks, and keeps the counts
// and states in BlockTable in step with that.
//
// Releasing can take long, so it is cut into parts: a function that takes
// `work` handles at most that many blocks, subtracts them from `work`, and
// returns false if it used up `work` before it was done.
//
// Owned by CacheParts; not thread-safe.
class BlockHolds {
 public:
  explicit BlockHolds(BlockTable* blocks) : blocks_(blocks) {}  // outlives this

  // Returns the hold of this name, or null if the owner has none.
  BlockHold* Find(const BlockOwner& owner, const BlockHold::Name& name) const;
  // A number, never 0, that names this hold and no later one, not even one with
  // the same name.
  static uint64_t HandleOf(const BlockHold& hold) {
    return Slab<BlockHold>::HandleOf(hold);
  }
  // Adds a hold that holds nothing yet, with room for the answers to `keys`
  // keys. REQUIRES: the owner has no hold of this name.
  BlockHold& Add(BlockOwner& owner, const BlockHold::Name& name, size_t keys);
  // REQUIRES: the hold has no places left.
  void Erase(BlockHold& hold);
  // The bytes of memory that Add counts for a hold of `keys` keys.
  static uint64_t BytesOf(size_t keys);

  // Returns a new number for a call that fills a hold.
  uint64_t NextCall() { return ++last_call_; }
  // Adds the next answer to a hold. If it is a place, the caller has locked or
  // reserved the block already.
  void Append(BlockHold& hold, BlockPlace place);
  // Publishes or gives back the block of one answer, if it is still to be
  // written; returns whether it was. The hold is not erased.
  bool Publish(BlockHold& hold, size_t index);
  bool Discard(BlockHold& hold, size_t index);
  // Prefetches what Publish (`is_published`) or Discard of this answer will
  // read. Call it some answers ahead if there are many.
  void PrefetchEnd(const BlockHold& hold, size_t index,
                   bool is_published) const {
    const BlockPlace place = hold.places[index];
    if (!IsPlace(place)) return;
    blocks_->PrefetchEnd(blocks_->memory().NumberOf(place), is_published);
  }

  // Gives up all that is left, and erases the hold.
  bool GiveUpAll(BlockHold& hold, uint32_t& work);
  // The same as GiveUpAll, but marks the hold as ending first, so that the call
  // that fills it finds it no more.
  bool Release(BlockHold& hold, uint32_t& work);
  // Releases all holds of the owner.
  bool ReleaseAll(BlockOwner& owner, uint32_t& work);
  // Detaches the blocks that the owner was to write: no call finds them any
  // more, but they stay where they are, because a process of the ended session
  // may still write to them.
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
  // Unlocks or discards the block at `place`, which is one of the hold's.
  void GiveUp(BlockHold& hold, BlockPlace place);

  BlockTable* const blocks_;
  Slab<BlockHold> holds_;
  SteadyIndex by_name_;  // the cells of holds_, by owner and name
  uint32_t reservations_ = 0;
  uint64_t last_call_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_HOLDS_H_
