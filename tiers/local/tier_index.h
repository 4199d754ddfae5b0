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

  // A slot for a block of a namespace that is about to be written. None: the
  // tier has the block or is getting it, or all blocks are in use.
  std::optional<uint32_t> BeginStore(const PageHash& hash, uint64_t ns_digest);
  // It is written, and found from now on. False: it was forgotten meanwhile,
  // and must be abandoned. REQUIRES: BeginStore gave it a slot.
  bool EndStore(const PageHash& hash, uint64_t checksum);
  // It is not written; its slot is free.
  void AbandonStore(const PageHash& hash);

  // Keeps a block in its slot until EndLoad. None: the tier does not have it.
  std::optional<Place> BeginLoad(const PageHash& hash);
  // A block that is not intact is forgotten.
  void EndLoad(const PageHash& hash, bool is_intact);

  // How many blocks at the front of `run` the tier has.
  size_t CountStored(std::span<const PageHash> run) const;
  // A prompt with these blocks is in use; the tier need not have all of them.
  void Touch(std::span<const PageHash> prompt);

  // A block that an earlier process wrote; more recently used than those
  // restored before. REQUIRES: its slot is free. False: the tier has the block
  // in another slot.
  bool Restore(const PageHash& hash, uint64_t ns_digest, const Place& place);

  // Marks a block as told of. False: the tier does not have it, or it has been
  // told of already.
  bool Tell(const PageHash& hash);
  // The blocks that were told of, and that the tier has no more, since the last
  // call.
  std::vector<PageHash> TakeGone() { return std::exchange(gone_, {}); }

  // Nothing of a namespace is found any more; none: of all. Those that are
  // returned keep their slots, as if each were being read, until EndLoad; those
  // that are being written, until AbandonStore.
  std::vector<Forgotten> ForgetAll(std::optional<uint64_t> ns_digest);
  // The same of the blocks in some slots.
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
  // A stored block is found no more.
  void Lose(const PageHash& hash, Block& block);
  void Forget(const PageHash& hash);

  absl::flat_hash_map<PageHash, Block> blocks_;
  std::list<PageHash> by_use_;  // the stored blocks, the oldest use first
  std::vector<bool> is_used_;   // by slot
  std::vector<uint32_t> free_;  // may list slots that Restore took
  std::vector<PageHash> gone_;  // that were told of
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_TIER_INDEX_H_
