#ifndef PANDO_TIERS_BLOCKS_SHARED_STORES_H_
#define PANDO_TIERS_BLOCKS_SHARED_STORES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/block_cache.h"
#include "tiers/blocks/block_copies.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/shared_blocks.h"
#include "tiers/blocks/store_notes.h"
#include "tiers/shared/block_window.h"
#include "tiers/shared/circuit_breaker.h"
#include "tiers/shared/deadline_threads.h"

namespace pando {

// Copies blocks from the block memory to a shared store, and tells it which are
// in use, on a thread of its own. A block is locked only while it is copied to
// a buffer, however slow the store is. Owned by SharedBlockTier; thread-safe.
class SharedStores {
 public:
  // The pointers must outlive this object. `timeout` limits one call of the
  // store.
  struct Parts {
    BlockCopies* copies;
    const KeptBlocks* kinds;
    SharedBlocks* shared;
    BlockTierCounts* counts;
    absl::Duration timeout;
  };

  explicit SharedStores(const Parts& parts);
  ~SharedStores();

  // See BlockStores.
  void Note(StoreNote note);
  void BeginDrain();
  // Returns whether stores keep failing.
  bool is_refused() const { return breaker_.is_open(); }

 private:
  // Blocks of one kind that are stored together. The threads own it together
  // with the thread that waits for them, which may give up the wait.
  struct Job {
    Job(std::shared_ptr<KnownKind> of, size_t bytes)
        : kind(std::move(of)), window(bytes) {}

    const std::shared_ptr<KnownKind> kind;
    std::vector<std::string> keys;  // of the blocks in the window
    BlockWindow window;
    absl::Time used;
    absl::Time deadline;
  };
  // A row of keys of one kind.
  struct Row {
    std::shared_ptr<KnownKind> kind;
    std::string_view keys;
    std::vector<BlockName> names;
  };

  void Run();
  bool MayStore(const KnownKind& kind) const;
  void StoreKeys(const KeysOfKind& keys);
  // Tells the store that the blocks at these positions are in use. Returns
  // those that it lacks.
  std::vector<uint32_t> Touch(const Row& row,
                              const std::vector<uint32_t>& positions);
  void StoreSome(const Row& row, std::span<const uint32_t> positions);
  // Seals and stores parts of the window until none is left.
  void PutParts(Job& job);
  void EraseReplaced(std::span<const RemoteStore::Transfer> blocks);
  // Notes the blocks that were stored, and counts the others.
  void EndStore(Job& job, uint64_t generation);
  void Failed(size_t blocks, const absl::Status& status);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !notes_.empty();
  }
  bool IsStopped() const {
    absl::MutexLock hold(&mutex_);
    return is_stopped_;
  }

  const Parts parts_;
  CircuitBreaker breaker_;
  DeadlineThreads putters_;
  mutable absl::Mutex mutex_;
  StoreNotes notes_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_STORES_H_
