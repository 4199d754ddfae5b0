#ifndef PANDO_TIERS_BLOCKS_STORE_NOTES_H_
#define PANDO_TIERS_BLOCKS_STORE_NOTES_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "core/block_cache.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Says that blocks were published or used, so that a tier stores those that it
// lacks. Their keys are in the order of the prompt.
struct StoreNote {
  std::shared_ptr<const std::vector<KeysOfKind>> keys;
  bool is_use = false;
};

// The notes that wait for the thread that stores. Guarded by its owner; not
// thread-safe.
class StoreNotes {
 public:
  // Adds a note, or counts its blocks as dropped if there is no room. Uses may
  // fill only half of the room, so that new blocks have some.
  void Add(StoreNote note, size_t blocks, BlockTierCounts& counts);
  bool empty() const { return notes_.empty(); }
  // REQUIRES: not empty.
  StoreNote Take();
  // Takes all notes away, and lets none in after that.
  std::deque<StoreNote> Close();

  // Returns how many blocks of known kinds a note names.
  static size_t CountBlocks(const StoreNote& note, const KeptBlocks& kinds);

 private:
  static size_t BytesOf(const StoreNote& note);

  std::deque<StoreNote> notes_;
  size_t bytes_ = 0;
  bool is_closed_ = false;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_STORE_NOTES_H_
