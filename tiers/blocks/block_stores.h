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
#include "base/ids.h"
#include "core/block_cache.h"
#include "tiers/blocks/block_bytes.h"
#include "tiers/blocks/block_files.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Copies blocks from the memory to files, and erases files, on one thread. So
// nothing is written of a kind while its files are taken away. It begins with
// what earlier processes have left.
//
// A block is locked only while it is copied to a buffer, however slow the disk
// is. Owned by BlockTier; thread-safe.
class BlockStores {
 public:
  // All outlive this.
  struct Parts {
    BlockCache* blocks;
    SessionId session;
    const BlockBytes* bytes;
    KeptBlocks* kept;
    BlockFiles* files;
    BlockTierCounts* counts;
  };

  // `on_erased` is called, by the thread, when WasErased says so of more.
  BlockStores(const Parts& parts, std::function<void()> on_erased);
  ~BlockStores();

  // Stores blocks; their keys are in the order of the prompt. Does not wait;
  // what there is no room for in the queue is counted as dropped.
  void Store(std::vector<KeysOfKind> keys);
  // They are in use: what the tier has of them stays longer. With `stores`,
  // what it has not is stored.
  void Use(std::vector<KeysOfKind> keys, bool stores);

  // Takes away the files of a kind that was renewed, which take so many bytes.
  void Erase(uint64_t kind, uint64_t bytes);
  // Counts what was given to Erase until now.
  uint64_t erasures() const;
  // Whether as many are done, also for after a kill.
  bool WasErased(uint64_t erasures) const;

  // Nothing more is stored.
  void BeginDrain();

 private:
  struct Note {
    std::vector<KeysOfKind> keys;
    bool stores = true;
    size_t bytes = 0;
    size_t count = 0;  // of keys
  };
  struct Erasure {
    uint64_t kind;
    uint64_t bytes;
  };
  // Keys of one kind, and which of them are stored now.
  struct Batch {
    KnownKind* kind;
    std::string_view keys;
    std::vector<BlockName> names;  // of all keys
    std::vector<uint32_t> indices;

    std::string_view key(uint32_t index) const {
      return kind->KeyOf(keys, index);
    }
  };

  void Queue(Note note, size_t most_bytes);
  void Run();
  void TakeStock();
  // Erasures that wait; they go before all else. Whether the thread goes on.
  bool EraseAll();
  // Deletes some of the files that EraseAll has taken away.
  void FreeSome();
  std::vector<bool> Have(const Batch& batch) const;
  // Room is not made of what the tier has of these keys already. The last of
  // them counts as used first, so that the ends of prompts go first.
  void Touch(const Batch& batch);
  void StoreKeys(const KeysOfKind& keys, bool stores);
  void StoreBatch(const Batch& batch);
  // Locks, copies and unlocks them; the places that were copied.
  std::vector<BlockPlace> CopyOut(const Batch& batch);
  void Write(const Batch& batch, uint32_t index, std::span<std::byte> value);
  // Whether there is room for the block from now on; the files of those that
  // made it are gone.
  bool BeginStore(const KnownKind& kind, const BlockName& name, uint64_t bytes);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !erasures_.empty() || !queue_.empty();
  }
  bool IsStopped() const {
    absl::MutexLock hold(&mutex_);
    return is_stopped_;
  }

  const Parts parts_;
  const std::function<void()> on_erased_;
  // The thread's alone.
  uint64_t last_lock_ = 0;
  std::vector<std::byte> buffer_;  // for a batch
  bool may_free_ = true;           // there may be more for FreeSome
  uint64_t to_free_ = 0;           // bytes that are erased, and count still
  mutable absl::Mutex mutex_;
  std::deque<Note> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Erasure> erasures_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_erasure_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t erased_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_STORES_H_
