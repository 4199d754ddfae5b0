#ifndef PANDO_TIERS_BLOCKS_KEPT_BLOCKS_H_
#define PANDO_TIERS_BLOCKS_KEPT_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "tiers/blocks/block_index.h"
#include "tiers/blocks/block_name.h"

namespace pando {

// A generation of a kind that a session has opened.
struct KnownKind {
  explicit KnownKind(TierKind of) : kind(std::move(of)) {}

  // The key at a position of keys that follow each other.
  std::string_view KeyOf(std::string_view keys, size_t index) const {
    return keys.substr(index * kind.key_bytes, kind.key_bytes);
  }
  BlockName NameOf(std::string_view key) const {
    return {kind.name(), TierKeyOf(key)};
  }

  const TierKind kind;
  std::atomic<bool> is_newest = true;
  std::atomic<uint64_t> stored = 0;  // blocks, since this was made
  std::atomic<uint64_t> loaded = 0;
  // Until then its blocks are not loaded, because the memory had no room for
  // one of them: in milliseconds since the Unix epoch of MonotonicNow.
  std::atomic<int64_t> full_until_ms = 0;
};

// Knows the kinds of the block memory, and which of their blocks the tier has.
// Owned by BlockTier. Thread-safe. Callers with many names make several calls,
// so that none holds the mutex for long.
//
// Invariant: no block of a generation that was replaced or forgotten is found,
// whatever is still stored of it.
class KeptBlocks {
 public:
  // The most names that one call takes, and the most blocks that it evicts.
  static constexpr size_t kMostNames = 256;
  // It knows at most so many kinds, twice as many as there can be at a time. It
  // forgets the least recently used one, and knows it again when a session
  // opens it.
  static constexpr size_t kMostKnownKinds = 2 * size_t{kMaxKinds};

  KeptBlocks(uint64_t max_bytes, uint64_t max_blocks)
      : index_(max_bytes, max_blocks) {}

  // Takes in the newest generation of a kind.
  void Know(const BlockKind& kind);
  // Takes in a generation that replaces the earlier ones. Returns how many
  // bytes the files of those take, which count as used until Freed is called
  // for them. Returns none if the generation is known already.
  std::optional<uint64_t> Renew(const BlockKind& kind);
  // Returns null if the kind is not known.
  std::shared_ptr<KnownKind> Find(KindNumber number) const;
  // Does the same, and counts as a use of the kind.
  std::shared_ptr<KnownKind> Use(KindNumber number);
  // Returns the known kinds, in the order of their numbers.
  std::vector<std::shared_ptr<KnownKind>> kinds() const;

  // Returns, for each name, whether the tier has its block. All names are of
  // `kind`.
  std::vector<bool> Have(const KnownKind& kind,
                         std::span<const BlockName> names) const;
  bool Has(const BlockName& name) const;

  enum class Begun {
    kYes,
    kNo,     // the tier has it, is too small, or its kind was replaced
    kAgain,  // some room was made, and more is needed
  };
  // Says that a block is about to be written. Appends the blocks that were
  // evicted to make room to `evicted`; the caller must delete their files.
  Begun BeginStore(const KnownKind& kind, const BlockName& name, uint64_t bytes,
                   std::vector<BlockName>& evicted);
  // See BlockIndex for these four.
  bool EndStore(const BlockName& name, bool is_written);
  bool HasRoom(uint64_t bytes) const;
  void Freed(uint64_t bytes);
  bool SweepSome();
  // Counts as a use of blocks, in this order.
  void Touch(std::span<const BlockName> names);
  // Takes out a block that is stored.
  void Forget(const BlockName& name);

  // Takes in a block that an earlier process has stored. Each counts as used
  // more recently than those before it. Returns false if there is no room, the
  // tier knows the block, or its kind was renewed since the start. Must not be
  // called after EndStock.
  bool Restore(const BlockName& name, uint64_t bytes);
  // Says that all blocks of earlier processes were taken in. It may now forget
  // which kinds were renewed since the start.
  void EndStock();

  struct Totals {
    uint64_t max_bytes;
    uint64_t max_blocks;
    uint64_t bytes;
    uint64_t blocks;
    uint64_t index_bytes;
  };
  Totals totals() const;

 private:
  using ByUse = std::list<std::shared_ptr<KnownKind>>;

  std::shared_ptr<KnownKind> Add(TierKind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOldestKind() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  BlockIndex index_ ABSL_GUARDED_BY(mutex_);
  ByUse by_use_ ABSL_GUARDED_BY(mutex_);  // the oldest use first
  absl::flat_hash_map<KindNumber, ByUse::iterator> kinds_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, std::shared_ptr<KnownKind>> newest_
      ABSL_GUARDED_BY(mutex_);
  bool takes_stock_ ABSL_GUARDED_BY(mutex_) = true;
  absl::flat_hash_set<uint64_t> renewed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_KEPT_BLOCKS_H_
