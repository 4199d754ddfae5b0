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
// At most a quarter of the memory, and kMostLoading blocks, wait to be loaded.
// So that a call that asks again and again learns that there is nothing to wait
// for, a block that the disk does not give is not begun again for a second; nor
// is any other when more of them fail, or the memory has no room.
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

  static constexpr size_t kMostLoading = 16'384;

  explicit BlockLoads(const Parts& parts);
  ~BlockLoads();

  // Begins to load the keys at these positions. What waits counts for
  // `asked_by`. Returns which of them are being loaded now: not those that
  // there is no room for, in the queue or in the account. REQUIRES: they are in
  // order, at most KeptBlocks::kMostNames.
  std::vector<bool> Begin(SessionId asked_by,
                          const std::shared_ptr<KnownKind>& kind,
                          const BlockKeys& keys,
                          std::span<const uint32_t> wanted);
  // Nothing more is loaded.
  void BeginDrain();

 private:
  // Keys of one kind, some of which are to be loaded.
  struct Load {
    // One of them.
    struct Block {
      uint32_t index;  // of `keys`
      BlockName name;
    };

    std::shared_ptr<KnownKind> kind;
    std::string keys;
    std::string before;
    std::vector<Block> blocks;
    KeptBytes account;

    std::string_view key(uint32_t index) const {
      return kind->KeyOf(keys, index);
    }
    // The key before; empty: there is none.
    std::string_view before_of(uint32_t index) const {
      return index > 0 ? key(index - 1) : std::string_view(before);
    }
  };
  using Blocks = std::span<const Load::Block>;

  void Run();
  void LoadSome(const Load& load, Blocks blocks);
  // Those that the memory has not.
  std::vector<Load::Block> Missing(const Load& load, Blocks blocks);
  bool Read(const Load& load, const Load::Block& block,
            std::span<std::byte> value);
  // Makes blocks that were read, one after the other in the buffer, findable.
  void Publish(const Load& load, Blocks read);
  void RefuseForAWhile();
  void RefuseForAWhile(const BlockName& name);
  void End(const Load& load, Blocks blocks);
  std::span<std::byte> ValueAt(const Load& load, size_t position);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !queue_.empty();
  }
  bool MayLoad() const {
    absl::MutexLock hold(&mutex_);
    return MayLoadNow();
  }
  bool MayLoadNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Parts parts_;
  // The thread's alone.
  uint64_t last_reservation_ = 0;
  std::vector<std::byte> buffer_;  // for some blocks
  mutable absl::Mutex mutex_;
  std::deque<Load> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<BlockName> loading_ ABSL_GUARDED_BY(mutex_);
  uint64_t loading_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time refused_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // The blocks that are refused until then.
  absl::flat_hash_set<BlockName> failed_ ABSL_GUARDED_BY(mutex_);
  absl::Time failed_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_LOADS_H_
