#ifndef PANDO_TIERS_LOCAL_TIER_INDEX_H_
#define PANDO_TIERS_LOCAL_TIER_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/nodes/page_hash.h"

namespace pando {

// Which blocks (copies of pages, named by the pages' hashes) a tier holds, and
// in which of its slots. It knows no bytes. When there is no free slot, the
// least recently used block makes room. A use of a prompt touches all of its
// blocks, the last one first; so a block is never older than those that follow
// it, and prompts lose their ends first.
//
// Owned by LocalTier, which guards it; not thread-safe.
//
// Invariants: a slot is free or belongs to one block; a block that is being
// written is not found; one that is being written or read keeps its slot.
class TierIndex {
 public:
  // Where the bytes of a block are, and the checksum that they must have.
  struct Place {
    uint32_t slot;
    uint64_t checksum;
  };
  // A block that is to be erased.
  struct Forgotten {
    PageHash hash;
    uint32_t slot;
  };

  explicit TierIndex(uint32_t slots);

  // Returns a slot for a block that is about to be written. May evict the least
  // recently used block for it. Returns none if the tier has the block or is
  // getting it, or if no block can be evicted.
  std::optional<uint32_t> BeginStore(const PageHash& hash, uint64_t ns_digest);
  // Says that the block is written: it is found from now on. Returns false if
  // the block was forgotten meanwhile; then AbandonStore must be called.
  // REQUIRES: BeginStore gave the block a slot.
  bool EndStore(const PageHash& hash, uint64_t checksum);
  // Says that the block is not written: its slot is free again.
  void AbandonStore(const PageHash& hash);

  // Keeps a block in its slot until EndLoad. Returns none if the tier does not
  // have the block.
  std::optional<Place> BeginLoad(const PageHash& hash);
  // Ends a load. A block that is not intact is forgotten.
  void EndLoad(const PageHash& hash, bool is_intact);

  // Returns how many blocks at the front of `run` the tier has.
  size_t CountStored(std::span<const PageHash> run) const;
  // Counts as a use of the blocks of a prompt. The tier need not have all of
  // them.
  void Touch(std::span<const PageHash> prompt);

  // Adds a block that an earlier process wrote. It counts as used more recently
  // than those restored before it. Returns false if the tier has the block in
  // another slot. REQUIRES: its slot is free.
  bool Restore(const PageHash& hash, uint64_t ns_digest, const Place& place);

  // Marks a block as reported to the follower of changes. Returns false if the
  // tier does not have it, or if it is marked already.
  bool Tell(const PageHash& hash);
  // Returns the reported blocks that the tier has lost since the last call.
  std::vector<PageHash> TakeGone() { return std::exchange(gone_, {}); }

  // Forgets the blocks of a namespace, or of all namespaces with none: they are
  // not found any more. The returned blocks keep their slots, as if each were
  // being read, until EndLoad is called for them. Blocks that are being written
  // keep theirs until AbandonStore.
  std::vector<Forgotten> ForgetAll(std::optional<uint64_t> ns_digest);
  // Does the same for the blocks in the slots for which `is_meant` returns
  // true.
  std::vector<Forgotten> ForgetIn(
      const std::function<bool(uint32_t slot)>& is_meant);

  uint32_t stored_blocks() const {
    return static_cast<uint32_t>(by_use_.size());
  }

 private:
  enum class State : uint8_t { kWriting, kStored, kForgotten };
  struct Block {
    Place place;
    uint64_t ns_digest;
    State state;
    bool is_told = false;
    uint32_t readers = 0;
    std::list<PageHash>::iterator use;  // in by_use_ while it is stored
  };

  std::vector<Forgotten> ForgetIf(
      const std::function<bool(const Block&)>& is_meant);
  bool EvictOne();
  // Makes a stored block forgotten: it is not found any more, and has no place
  // in by_use_. Notes it in gone_ if it was reported.
  void Lose(const PageHash& hash, Block& block);
  void Forget(const PageHash& hash);

  absl::flat_hash_map<PageHash, Block> blocks_;
  std::list<PageHash> by_use_;  // the stored blocks, the oldest use first
  std::vector<bool> is_used_;   // by slot
  std::vector<uint32_t> free_;  // may list slots that Restore took
  std::vector<PageHash> gone_;  // reported blocks that are lost
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_TIER_INDEX_H_
