#ifndef PANDO_TIERS_BLOCKS_BLOCK_LOADS_H_
#define PANDO_TIERS_BLOCKS_BLOCK_LOADS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/kept_bytes.h"
#include "core/prefix_cache.h"
#include "core/requests/block_requests.h"
#include "tiers/blocks/block_copies.h"
#include "tiers/blocks/block_source.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Loads blocks from where a tier keeps them into the block memory, on one
// thread, in the order of the requests. A block is read and verified before a
// place is reserved for it, so a source that hangs takes no memory from the
// engines.
//
// At most kMostLoading blocks, and at most as many as a quarter of the memory
// holds, wait to be loaded. A block that the source fails to give is refused
// for at most a second; a call that keeps asking for it thus learns that there
// is nothing to wait for. All blocks are refused for at most a second when many
// fail, or when the memory has no room.
//
// Owned by a tier of blocks; thread-safe.
class BlockLoads {
 public:
  // The pointers must outlive this object.
  struct Parts {
    PrefixCache* cache;
    BlockCopies* copies;
    BlockSource* source;
    BlockTierCounts* counts;
    uint64_t memory_bytes;
  };

  static constexpr size_t kMostLoading = 16'384;

  explicit BlockLoads(const Parts& parts);
  ~BlockLoads();

  // Begins to load the keys at the positions `wanted` in `keys`. The memory of
  // the request counts in the account of `asked_by`. Returns, for each
  // position, whether its block is being loaded now; it is not if the block is
  // refused, or if the queue has no room. Returns none if the account has no
  // room, or if the session has ended. REQUIRES: the positions are in order,
  // and at most KeptBlocks::kMostNames.
  std::optional<std::vector<bool>> Begin(SessionId asked_by,
                                         const std::shared_ptr<KnownKind>& kind,
                                         const BlockKeys& keys,
                                         std::span<const uint32_t> wanted);
  // Returns, for each name, whether its block is being loaded.
  std::vector<bool> AreLoading(std::span<const BlockName> names) const;
  // Returns false while it refuses all blocks of the kind.
  bool MayLoad(const KnownKind& kind) const {
    absl::MutexLock hold(&mutex_);
    return MayLoadNow(kind);
  }
  // Begins no more loads.
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
    // Returns the key before the one at `index`; empty if there is none.
    std::string_view before_of(uint32_t index) const {
      return index > 0 ? key(index - 1) : std::string_view(before);
    }
  };
  using Blocks = std::span<const Load::Block>;
  // A block, and its value.
  struct Read {
    uint32_t index;  // of Load::keys
    std::span<std::byte> value;
  };

  void Run();
  void LoadSome(const Load& load, Blocks blocks);
  // Returns those of the blocks that the memory lacks, with room for their
  // values in the buffer.
  std::vector<Read> Missing(const Load& load, Blocks blocks);
  // Publishes the blocks that were read.
  void Publish(const Load& load, std::span<const Read> reads);
  // Refuses all blocks for a while, or this block.
  void RefuseForAWhile();
  void RefuseForAWhile(const BlockName& name);
  void End(const Load& load, Blocks blocks);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !queue_.empty();
  }
  bool HasRoom(uint64_t block_bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayLoadNow(const KnownKind& kind) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Parts parts_;
  // Values of blocks that are loaded together. Only the thread uses it.
  std::vector<std::byte> buffer_;
  mutable absl::Mutex mutex_;
  std::deque<Load> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<BlockName> loading_ ABSL_GUARDED_BY(mutex_);
  uint64_t loading_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time refused_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // The blocks that are refused until `failed_until_`.
  absl::flat_hash_set<BlockName> failed_ ABSL_GUARDED_BY(mutex_);
  absl::Time failed_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_LOADS_H_
