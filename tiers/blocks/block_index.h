#ifndef PANDO_TIERS_BLOCKS_BLOCK_INDEX_H_
#define PANDO_TIERS_BLOCKS_BLOCK_INDEX_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/nodes/page_hash.h"
#include "tiers/blocks/block_name.h"

namespace pando {

// Which blocks a tier has, and how many bytes they take. It knows no bytes of
// blocks. When there is no room, the block that was used least recently makes
// it. Blocks of different sizes share the room.
//
// Owned by BlockTier, which guards it; not thread-safe. ForgetKind is O(1),
// MakeRoom O(kinds) for each block that goes, all else O(1).
//
// Invariants: the bytes of all blocks, those that are being written included,
// are at most max_bytes; a block that is being written is not found.
class BlockIndex {
 public:
  // The blocks of one kind.
  struct Blocks;
  struct BlocksDeleter {
    void operator()(Blocks* blocks) const;
  };
  // ForgetKind has taken these out; they take long to delete.
  using Garbage = std::unique_ptr<Blocks, BlocksDeleter>;

  explicit BlockIndex(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  bool Has(const BlockName& name) const;
  // A block is about to be written. False: the tier has it, or it is larger
  // than the tier. Appends what made room to `evicted`: that is found no more.
  bool BeginStore(const BlockName& name, uint64_t bytes,
                  std::vector<BlockName>& evicted);
  // Returns whether it is found from now on: it was written, and its kind was
  // not forgotten meanwhile.
  bool EndStore(const BlockName& name, bool is_written);
  // A block of an earlier process, used more recently than those restored
  // before. False: there is no room, or the tier has it.
  bool Restore(const BlockName& name, uint64_t bytes);
  // A block is in use now.
  void Touch(const BlockName& name);
  // It is found no more.
  void Forget(const BlockName& name);
  // Nothing of the kind is found any more, nor what is being written of it.
  Garbage ForgetKind(uint64_t kind);

  uint64_t max_bytes() const { return max_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t count() const { return count_; }

 private:
  Blocks& BlocksOf(uint64_t kind);
  // The kind whose oldest block was used longest ago; null: none can go.
  Blocks* Oldest() const;
  void Remove(Blocks& blocks, const PageHash& key);

  const uint64_t max_bytes_;
  absl::flat_hash_map<uint64_t, Garbage> kinds_;
  uint64_t used_bytes_ = 0;
  uint64_t count_ = 0;  // of blocks that are found
  uint64_t last_use_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_INDEX_H_
