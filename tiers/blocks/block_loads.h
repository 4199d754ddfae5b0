#ifndef PANDO_TIERS_BLOCKS_BLOCK_LOADS_H_
#define PANDO_TIERS_BLOCKS_BLOCK_LOADS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/block_cache.h"
#include "core/kept_bytes.h"
#include "tiers/blocks/block_bytes.h"
#include "tiers/blocks/block_files.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Brings blocks from files back into the memory, on one thread, the requests in
// the order in which they came. A block is read and verified before a place is
// reserved for it: so a disk that hangs takes nothing from the engines.
//
// At most a quarter of the memory waits to be loaded. When a block
// could not be loaded that the tier still has, because the memory has no room
// or the disk fails, nothing more is begun for a second: so a call that asks
// again and again learns that there is nothing to wait for.
//
// Owned by BlockTier; thread-safe.
class BlockLoads {
 public:
  // All outlive this.
  struct Parts {
    PrefixCache* cache;
    BlockCache* blocks;
    SessionId session;
    const BlockBytes* bytes;
    KeptBlocks* kept;
    BlockFiles* files;
    BlockTierCounts* counts;
    uint64_t memory_bytes;
  };

  explicit BlockLoads(const Parts& parts);
  ~BlockLoads();

  // Begins to load the keys at these positions. What waits counts for
  // `asked_by`. Returns which of them are being loaded now: not those that
  // there is no room for, in the queue or in the account.
  std::vector<bool> Begin(SessionId asked_by,
                          const std::shared_ptr<KnownKind>& kind,
                          const BlockKeys& keys,
                          std::span<const uint32_t> wanted);
  // Nothing more is loaded.
  void BeginDrain();

 private:
  // Keys of one kind, some of which are to be loaded.
  struct Load {
    std::shared_ptr<KnownKind> kind;
    std::string keys;
    std::string before;
    std::vector<uint32_t> indices;
    KeptBytes account;

    std::string_view key(uint32_t index) const {
      const size_t bytes = kind->kind.key_bytes;
      return std::string_view(keys).substr(index * bytes, bytes);
    }
    // The key before; empty: there is none.
    std::string_view before_of(uint32_t index) const {
      return index > 0 ? key(index - 1) : std::string_view(before);
    }
  };

  void Run();
  void LoadSome(const Load& load, std::span<const uint32_t> indices);
  // Those that the memory has not.
  std::vector<uint32_t> Missing(const Load& load,
                                std::span<const uint32_t> indices);
  bool Read(const Load& load, uint32_t index, std::span<std::byte> value);
  // Makes blocks that were read, one after the other in the buffer, findable.
  void Publish(const Load& load, std::span<const uint32_t> read);
  void RefuseForAWhile();
  void End(const Load& load, std::span<const uint32_t> indices);
  std::span<std::byte> ValueAt(const Load& load, size_t position);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !queue_.empty();
  }
  bool IsStopped() const {
    absl::MutexLock hold(&mutex_);
    return is_stopped_ || is_draining_;
  }

  const Parts parts_;
  // The thread's alone.
  uint64_t last_reservation_ = 0;
  std::vector<std::byte> buffer_;  // for some blocks
  mutable absl::Mutex mutex_;
  std::deque<Load> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<BlockName> loading_ ABSL_GUARDED_BY(mutex_);
  uint64_t loading_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time refused_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_LOADS_H_
