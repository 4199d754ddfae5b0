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
#include "core/blocks/block_quotas.h"
#include "core/blocks/block_record.h"
#include "core/blocks/kind.h"
#include "core/blocks/kind_table.h"
#include "core/eviction/ghost_ring.h"
#include "core/requests/block_requests.h"

namespace pando {

// The blocks of all kinds: which blocks exist, which block comes before each,
// which is evicted next, and the room for more. It knows how often a block is
// locked, but not which sessions locked it; BlockHolds knows that.
//
// A block has a link to the one before it, and counts the good links that lead
// to it. A ready, unlocked block to which no good link leads is a leaf. Within
// a kind, the least recently used leaf is evicted first, so a block is never
// evicted before those that follow it. When a kind needs room, it may take an
// extent from a kind whose coldest leaf is much older. The blocks of that
// extent are evicted at once. Blocks in other extents that follow them stay,
// without a block before them, until they are stored again or evicted. Quotas
// bound what kinds take from each other.
//
// Owned by CacheParts; not thread-safe. Each call is O(1) or O(log n) but for
// MakeRoom, which may look through some extents.
class BlockTable {
 public:
  // Takes over the blocks that an earlier process left in the ledger, if any.
  explicit BlockTable(const BlockOptions& options);

  uint64_t memory_bytes() const { return memory_.memory_bytes(); }
  KindTable& kinds() { return kinds_; }
  const KindTable& kinds() const { return kinds_; }
  BlockMemory& memory() { return memory_; }
  const BlockMemory& memory() const { return memory_; }
  BlockQuotas& quotas() { return quotas_; }
  const BlockQuotas& quotas() const { return quotas_; }
  BlockRecord& At(BlockNumber block) const { return memory_.At(block); }

  // Begins a new use: blocks that are touched from now on count as used later
  // than all blocks touched before.
  void NextUse() { ++use_; }
  uint64_t use() const { return use_; }
  // The time by which blocks are overdue and evictions are dated.
  void set_time(absl::Time now) { now_ = now; }
  void set_write_limit(absl::Duration limit) {
    write_limit_ms_ = static_cast<uint64_t>(absl::ToInt64Milliseconds(limit));
  }
  absl::Time time() const { return now_; }

  static uint64_t HashOf(std::string_view key) {
    return absl::HashOf(absl::string_view(key.data(), key.size()));
  }
  // Returns the block of a key, or kNoBlock. REQUIRES, for FindMany, too: the
  // kind has not ended.
  BlockNumber Find(const Kind& kind, std::string_view key) const {
    return Find(kind, key, HashOf(key));
  }
  // The same for at most kManyKeys keys, one behind the other in `keys`. This
  // takes less time for each key than Find.
  static constexpr size_t kManyKeys = 16;
  void FindMany(const Kind& kind, std::string_view keys,
                std::span<BlockNumber> found) const;

  // Whether the block has been in writing for longer than
  // BlockOptions::write_limit.
  bool IsOverdue(const BlockRecord& record) const {
    return record.is_written() && NowMillis() >= record.stamp + write_limit_ms_;
  }
  // When a block that is being written was reserved or reattached.
  absl::Time ReservedAt(const BlockRecord& record) const {
    return absl::FromUnixMillis(static_cast<int64_t>(record.stamp));
  }

  // Marks a ready block as used now. Touch, Lock and Unlock return whether the
  // order of leaves changed, which costs as much as several blocks otherwise
  // do.
  bool Touch(Kind& kind, BlockNumber block);
  // Takes one lock on the block and touches it. REQUIRES: CanLock.
  bool Lock(Kind& kind, BlockNumber block);
  bool Unlock(BlockNumber block);
  // Whether a lock more can be counted. One count is left for Pin.
  bool CanLock(BlockNumber block) const {
    return At(block).locks < BlockRecord::kMaxCount - 1;
  }
  // Keeps a block, ready or not, from eviction while a call still needs it. It
  // acts like a lock, but no count of locked blocks includes it.
  void Pin(BlockNumber block);
  void Unpin(BlockNumber block);

  // Makes room for one block of the kind. Returns false if nothing can be
  // evicted for it.
  bool MakeRoom(Kind& kind);
  // Begins a block that comes after `previous` (kNoBlock: after none), and
  // returns it. REQUIRES: MakeRoom returned true, and the key has no block.
  BlockNumber Reserve(Kind& kind, std::string_view key, BlockNumber previous);
  // Links `block` to `previous`, the block before it. Does nothing if `block`
  // has a good link already or might itself come before `previous`. Returns how
  // many links it followed to find that out.
  uint32_t Link(Kind& kind, BlockNumber block, BlockNumber previous);
  // Publishes a block that is being written. If its kind has ended, or its key
  // already has a ready block, the block is freed instead and false is
  // returned.
  bool Publish(BlockNumber block);
  // Makes a detached block findable again, as one that is being written, unless
  // a ready block has its key. Its write limit begins anew, even if it is then
  // not published. Publish has less to do afterwards.
  void Reattach(BlockNumber block);
  // Frees a block that is being written.
  void Discard(BlockNumber block);
  // Prefetches the index entry that Publish (`is_published`) or Discard of a
  // block will read, if it will read one.
  void PrefetchEnd(BlockNumber block, bool is_published) const;
  // Makes a block that is being written impossible to find by its key. It stays
  // where it is.
  void Detach(BlockNumber block);

  // The blocks that workers of an earlier process had locked or were to write.
  // The caller of TakeEarlier owns them from then on: each of `locked` is
  // locked once, each of `written` is being written and is not found by its
  // key. All other blocks can be found as before.
  struct HeldBlocks {
    std::vector<BlockNumber> locked;
    std::vector<BlockNumber> written;
  };
  HeldBlocks TakeEarlier() { return std::exchange(earlier_, {}); }

  // How many uses ago the leaf that is evicted next was last used; none if
  // there is no leaf.
  std::optional<uint64_t> ColdestAge(const Kind& kind) const;

  // The bytes of all records and indexes.
  uint64_t index_bytes() const;
  // A count that grows whenever a block or a count of blocks changes.
  uint64_t changes() const { return changes_; }
  // Blocks that were evicted since the start.
  uint64_t evictions() const { return evictions_; }
  // How many processes have taken the blocks over, each from the one before it.
  uint64_t recoveries() const { return ledger_.recoveries(); }
  // How many kinds and extents were examined, since the start, to find an
  // extent to take.
  uint64_t looks() const { return looks_; }

  // Frees about `work` extents of kinds that have ended, and subtracts them
  // from `work`. Returns whether there are more.
  bool FreeEnded(uint32_t& work);

  // The last eviction of a block with this key.
  std::optional<GhostRing<BlockEviction>::Ghost> FindEvicted(
      const Kind& kind, std::string_view key) const {
    return evicted_.Find({kind.info.number.value(), HashOf(key)});
  }
  // The block before, to which the link of a block leads; kNoBlock if it has no
  // good link.
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
  // Changes a record by `change`, and updates the order of leaves. Returns
  // whether that order changed.
  template <typename F>
  bool Change(Kind& kind, BlockNumber block, F&& change);
  void Hold(BlockNumber block) { ++memory_.ExtentOf(block).held; }
  // The block is not held (locked or written) any more. If its kind has ended
  // and no block of its extent is held now, frees the extent.
  void Unhold(BlockNumber block);
  // Takes a block of a live kind out of the index, and breaks its links.
  // REQUIRES: it is detached.
  void Forget(Kind& kind, BlockNumber block);
  // Breaks the link from the block and all links to it.
  void Unlink(Kind& kind, BlockNumber block);
  // Makes sure that a block which is being written can be found by its key.
  // Returns false if its kind has ended or another block with its key is ready.
  bool MakeFindable(Kind& kind, BlockNumber block);
  // Whether `block` may come before `previous`: it follows the links back from
  // `previous`, adds their number to `links`, and also returns true when there
  // are too many to follow.
  bool MayComeBefore(const Kind& kind, BlockNumber block, BlockNumber previous,
                     uint32_t& links) const;
  // Frees a block that is still held, but that no count of its state includes
  // any more.
  void Free(Kind& kind, BlockNumber block);
  void FreeEndedExtent(uint32_t extent);

  // Builds the indexes, counts and lists from the ledger.
  void Recover();
  // Adds one block to the index and the counts. Appends it to `doubles` instead
  // if another block has its key.
  void RecoverBlock(BlockNumber block, std::vector<BlockNumber>& doubles);
  // Counts the link of a block if it is good, else forgets it.
  void RecoverLink(Kind& kind, BlockNumber block);
  void RecoverLeaves();
  // Visits all blocks, ready ones and those being written.
  template <typename F>
  void ForEachBlock(F&& visit);

  bool EvictLeaf(Kind& kind);
  // Whether `kind`, whose own coldest leaf was last used `age` uses ago, may
  // take an extent of `other`, whose coldest leaf is of `other_age`.
  static bool MayTake(const Kind& kind, std::optional<uint64_t> age,
                      const Kind& other, uint64_t other_age);
  // Takes an extent for `kind`, whose own coldest leaf was last used `age` uses
  // ago, from another kind; from itself if there are no leaves. Returns whether
  // it took one.
  bool TakeExtent(const Kind& kind, std::optional<uint64_t> age);
  bool TakeExtentFrom(Kind& victim, uint64_t age);
  bool TakeAnyExtentFrom(Kind& victim);
  // Returns the cost of evicting an extent: the number of its blocks that were
  // used less than `age` uses ago, plus the number of links to its blocks from
  // other extents.
  uint64_t LossOf(uint32_t extent, uint64_t age) const;
  void EvictExtent(uint32_t extent);
  void NoteEviction(Kind& kind, BlockNumber block, BlockEviction reason);

  uint64_t write_limit_ms_ = 0;
  BlockLedger ledger_;
  BlockMemory memory_;
  BlockQuotas quotas_;
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
