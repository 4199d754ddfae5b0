#ifndef PANDO_TIERS_BLOCKS_BLOCK_STORES_H_
#define PANDO_TIERS_BLOCKS_BLOCK_STORES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/block_cache.h"
#include "tiers/blocks/block_copies.h"
#include "tiers/blocks/block_files.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/sealed_block.h"
#include "tiers/blocks/store_notes.h"

namespace pando {

// Copies blocks from the block memory to files, and erases files. One thread
// does both, so nothing of a kind is written while its files are taken away.
// The thread begins by taking stock of the files that earlier processes have
// left.
//
// A block is locked only while it is copied to a buffer, however slow the disk
// is. Owned by DiskBlockTier; thread-safe.
class BlockStores {
 public:
  // The pointers must outlive this object.
  struct Parts {
    BlockCopies* copies;
    KeptBlocks* kept;
    BlockFiles* files;
    BlockTierCounts* counts;
  };

  // The thread calls `on_erased` whenever an erasure is done, so that WasErased
  // may return true for more.
  BlockStores(const Parts& parts, std::function<void()> on_erased);
  ~BlockStores();

  // Queues a note. Does not wait. Blocks to be stored for which the queue has
  // no room count as dropped. A use makes blocks that the tier has stay longer.
  void Note(StoreNote note);

  // Queues the erasure of all files of a renewed kind, which take `bytes`
  // bytes.
  void Erase(uint64_t kind, uint64_t bytes);
  // Returns how often Erase was called.
  uint64_t erasures() const;
  // Returns whether the first `erasures` of them are done, so that their blocks
  // are not found even after a kill.
  bool WasErased(uint64_t erasures) const;

  // Drops all waiting keys and takes no more. Keys that are being stored, and
  // erasures, go on.
  void BeginDrain();

 private:
  // The files of a kind that are to be erased.
  struct Erasure {
    uint64_t kind;
    uint64_t bytes;
  };
  // Keys of one kind. `indices` says which of them are stored now.
  struct Batch {
    KnownKind* kind;
    std::string_view keys;
    std::vector<BlockName> names;  // of all keys
    std::vector<uint32_t> indices;

    std::string_view key(uint32_t index) const {
      return kind->KeyOf(keys, index);
    }
  };

  void Run();
  // Takes in the blocks that earlier processes have left, as far as there is
  // room.
  void TakeStock();
  // Does the erasures that wait, which go before all else. Returns whether the
  // thread goes on.
  bool EraseAll();
  // Deletes some of the files that EraseAll has taken away.
  void FreeSome();
  std::vector<bool> Have(const Batch& batch) const;
  // Counts as a use of the blocks that the tier has, so that stores do not
  // evict them. The last key counts as used first, so that the ends of prompts
  // are evicted first.
  void Touch(const Batch& batch);
  void StoreKeys(const KeysOfKind& keys);
  void StoreBatch(const Batch& batch);
  void Write(const Batch& batch, uint32_t index, std::span<std::byte> value);
  // Makes room for a block, and deletes the files of evicted blocks. Returns
  // false if the block is not to be stored.
  bool BeginStore(const KnownKind& kind, const BlockName& name, uint64_t bytes);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !erasures_.empty() || !notes_.empty();
  }
  bool IsStopped() const {
    absl::MutexLock hold(&mutex_);
    return is_stopped_;
  }

  const Parts parts_;
  const std::function<void()> on_erased_;
  const BlockSeal seal_;
  // Only the thread uses these.
  std::vector<std::byte> buffer_;  // values of a batch
  bool may_free_ = true;           // FreeSome may have more to delete
  uint64_t to_free_ = 0;           // bytes of erased files that still count
  mutable absl::Mutex mutex_;
  StoreNotes notes_ ABSL_GUARDED_BY(mutex_);
  std::deque<Erasure> erasures_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_erasure_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t erased_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_STORES_H_
