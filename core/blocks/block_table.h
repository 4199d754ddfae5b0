#ifndef PANDO_CORE_BLOCKS_BLOCK_TABLE_H_
#define PANDO_CORE_BLOCKS_BLOCK_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/blocks/block_ledger.h"
#include "core/blocks/block_memory.h"
#include "core/blocks/block_record.h"
#include "core/blocks/kind.h"
#include "core/blocks/kind_table.h"
#include "core/eviction/ghost_ring.h"
#include "core/requests/block_requests.h"

namespace pando {

// The blocks of all kinds: which are there, what is before each, who may be
// evicted next, and the room for more. It knows how often a block is locked and
// not by whom; that is in BlockHolds.
//
// A block remembers the one before it by a link, and counts the links to it
// that are good; it is a leaf if there are none. Within a kind the leaf goes
// first that was used least recently, so that no block goes before those that
// follow it. An extent moves to the kind that needs room from the kind whose
// coldest leaf is older; its blocks go at once, and those that follow them
// elsewhere stay, as if nothing was before them, until they are stored again or
// evicted.
//
// Owned by CacheParts; not thread-safe. Each call is O(1) or O(log n) but for
// MakeRoom, which may look through some extents.
class BlockTable {
 public:
  // Takes over what a process before has left in the ledger.
  explicit BlockTable(const BlockOptions& options);

  const BlockOptions& options() const { return options_; }
  KindTable& kinds() { return kinds_; }
  const KindTable& kinds() const { return kinds_; }
  BlockMemory& memory() { return memory_; }
  const BlockMemory& memory() const { return memory_; }
  BlockRecord& At(BlockNumber block) const { return memory_.At(block); }

  // A new use: what is touched from now on was used later than all before.
  void NextUse() { ++use_; }
  uint64_t use() const { return use_; }
  void set_time(absl::Time now) { now_ = now; }
  absl::Time time() const { return now_; }

  static uint64_t HashOf(std::string_view key) {
    return absl::HashOf(absl::string_view(key.data(), key.size()));
  }
  // The block of a key; kNoBlock: there is none. REQUIRES, here and below: the
  // kind has not ended.
  BlockNumber Find(const Kind& kind, std::string_view key) const {
    return Find(kind, key, HashOf(key));
  }
  // The same for at most kManyKeys keys, which follow each other in `keys`;
  // takes less time for each.
  static constexpr size_t kManyKeys = 16;
  void FindMany(const Kind& kind, std::string_view keys,
                std::span<BlockNumber> found) const;

  // It is written, but for longer than it may be.
  bool IsOverdue(const BlockRecord& record) const {
    return record.is_written() &&
           NowMillis() >=
               record.stamp + static_cast<uint64_t>(absl::ToInt64Milliseconds(
                                  options_.write_limit));
  }
  // When a block that is written was reserved.
  absl::Time ReservedAt(const BlockRecord& record) const {
    return absl::FromUnixMillis(static_cast<int64_t>(record.stamp));
  }

  // A ready block is used now. All three return whether the order of leaves
  // changed, which costs as much as some other blocks.
  bool Touch(Kind& kind, BlockNumber block);
  // Touches it, too. REQUIRES: CanLock.
  bool Lock(Kind& kind, BlockNumber block);
  bool Unlock(BlockNumber block);
  // One is left for Pin.
  bool CanLock(BlockNumber block) const {
    return At(block).locks < BlockRecord::kMaxCount - 1;
  }
  // While a call has further use for a block, ready or not, it stays: as
  // locked, but counted nowhere.
  void Pin(BlockNumber block);
  void Unpin(BlockNumber block);

  // Makes room for one block of the kind. False: nothing can be evicted for it.
  bool MakeRoom(Kind& kind);
  // Begins a block, which comes after `previous`, if there is one.
  // REQUIRES: MakeRoom said so, and the key has no block.
  BlockNumber Reserve(Kind& kind, std::string_view key, BlockNumber previous);
  // `block` comes after `previous`, unless it has a good link already, or comes
  // before it. Returns how many other links that took to find out.
  uint32_t Link(Kind& kind, BlockNumber block, BlockNumber previous);
  // Publishes a written block. It is freed when its kind has ended or its key
  // has another block; returns false then.
  bool Publish(BlockNumber block);
  // Frees a written block.
  void Discard(BlockNumber block);
  // Fetches what Publish and Discard of a written block will look for, beside
  // its record, where they look for anything.
  void PrefetchEnd(BlockNumber block, bool is_published) const;
  // A written block is not found any more. It stays where it is.
  void Detach(BlockNumber block);

  // Blocks that those have locked, or were to write, who had their memory from
  // the process before: now, as locked once, or written and not found by their
  // keys, they are the caller's. Others are found as they were.
  struct HeldBlocks {
    std::vector<BlockNumber> locked;
    std::vector<BlockNumber> written;
  };
  HeldBlocks TakeEarlier() { return std::exchange(earlier_, {}); }

  // Since the last use of the leaf to evict next; none: there is no leaf.
  std::optional<uint64_t> ColdestAge(const Kind& kind) const;

  // The memory of all records and indexes.
  uint64_t index_bytes() const;
  // Differs once a block or a count of blocks has changed.
  uint64_t changes() const { return changes_; }
  // Blocks that were evicted since the start.
  uint64_t evictions() const { return evictions_; }
  // Processes that took the blocks over, each from the one before.
  uint64_t recoveries() const { return ledger_.recoveries(); }
  // Kinds and extents that were looked at for one to take, since the start.
  uint64_t looks() const { return looks_; }

  // Frees extents of kinds that have ended, about `work` of them; returns
  // whether there are more.
  bool FreeEnded(uint32_t& work);

  // The last eviction of a block with this key.
  std::optional<GhostRing<BlockEviction>::Ghost> FindEvicted(
      const Kind& kind, std::string_view key) const {
    return evicted_.Find({kind.info.number.value(), HashOf(key)});
  }
  // Where the link of a block leads; kNoBlock: nowhere (any more).
  BlockNumber PreviousOf(const Kind& kind, const BlockRecord& record) const;

 private:
  friend class DamagedCache;  // tests break what CheckInvariants finds

  BlockNumber Find(const Kind& kind, std::string_view key,
                   uint64_t hash) const {
    return kind.index->blocks.Find(
        hash, [&](BlockNumber block) { return memory_.KeyOf(block) == key; });
  }
  uint64_t NowMillis() const {
    return static_cast<uint64_t>(absl::ToUnixMillis(now_));
  }
  // Changes a record by `change`, and the order of leaves with it. Returns
  // whether that changed.
  template <typename F>
  bool Change(Kind& kind, BlockNumber block, F&& change);
  void Hold(BlockNumber block) { ++memory_.ExtentOf(block).held; }
  // A block is not read or written any more.
  void Unhold(BlockNumber block);
  // The block of a live kind is not found any more, and no link leads from or
  // to it. REQUIRES: it is detached.
  void Forget(Kind& kind, BlockNumber block);
  // No link leads from or to it any more.
  void Unlink(Kind& kind, BlockNumber block);
  // A written block can be found, unless another with its key is ready.
  bool MakeFindable(Kind& kind, BlockNumber block);
  // Whether `block` is found on the way back from `previous`; also when that
  // has too many links. Counts those that it looks at.
  bool MayComeBefore(const Kind& kind, BlockNumber block, BlockNumber previous,
                     uint32_t& links) const;
  // Frees a block that is held and not counted in a state any more.
  void Free(Kind& kind, BlockNumber block);
  void FreeEndedExtent(uint32_t extent);

  // Makes indexes, counts and lists from the facts of the ledger.
  void Recover();
  void RecoverBlock(BlockNumber block, std::vector<BlockNumber>& doubles);
  // Counts the links that are good, and forgets the others.
  void RecoverLink(Kind& kind, BlockNumber block);
  void RecoverLeaves();
  // Visits the blocks that are there, ready or written.
  template <typename F>
  void ForEachBlock(F&& visit);

  bool EvictLeaf(Kind& kind);
  // Takes an extent for `kind` from another kind, if the coldest leaf there has
  // not been used for longer than `age` by far.
  bool TakeExtent(const Kind& kind, std::optional<uint64_t> age);
  bool TakeExtentFrom(Kind& victim, uint64_t age);
  // The loss with an extent: its blocks that were used less than `age` ago, and
  // the links to its blocks from elsewhere.
  uint64_t LossOf(uint32_t extent, uint64_t age) const;
  void EvictExtent(uint32_t extent);
  void NoteEviction(Kind& kind, BlockNumber block, BlockEviction reason);

  const BlockOptions options_;
  BlockLedger ledger_;
  BlockMemory memory_;
  KindTable kinds_;
  HeldBlocks earlier_;
  GhostRing<BlockEviction> evicted_;
  uint64_t use_ = 0;
  uint64_t evictions_ = 0;
  uint64_t looks_ = 0;
  uint64_t changes_ = 0;
  absl::Time now_ = absl::UnixEpoch();
};

template <typename F>
bool BlockTable::Change(Kind& kind, BlockNumber block, F&& change) {
  ++changes_;
  BlockRecord& record = At(block);
  const bool was_leaf = record.is_leaf();
  const uint64_t stamp = record.stamp;
  change(record);
  const bool is_leaf = record.is_leaf();
  if ((!was_leaf && !is_leaf) || kind.has_ended()) return false;
  if (was_leaf && is_leaf && stamp == record.stamp) return false;
  absl::btree_set<Leaf>& leaves = kind.index->leaves;
  if (was_leaf) leaves.erase({stamp, block});
  // A leaf that is used now goes last.
  if (is_leaf) leaves.insert(leaves.end(), {record.stamp, block});
  return true;
}

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_TABLE_H_
