#ifndef PANDO_TIERS_BLOCKS_KEPT_BLOCKS_H_
#define PANDO_TIERS_BLOCKS_KEPT_BLOCKS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "tiers/blocks/block_index.h"
#include "tiers/blocks/block_name.h"

namespace pando {

// A generation of a kind that a session has opened.
struct KnownKind {
  explicit KnownKind(TierKind of) : kind(std::move(of)) {}

  BlockName NameOf(std::string_view key) const {
    return {kind.name(), TierKeyOf(key)};
  }

  const TierKind kind;
  std::atomic<bool> is_newest = true;
  std::atomic<uint64_t> stored = 0;  // blocks
  std::atomic<uint64_t> loaded = 0;
};

// The kinds of the block memory, and which of their blocks the tier has.
// Owned by BlockTier. Thread-safe; no call takes longer than its blocks do.
//
// Invariant: of a generation that was replaced nothing is found, whatever is
// still stored of it.
class KeptBlocks {
 public:
  explicit KeptBlocks(uint64_t max_bytes) : index_(max_bytes) {}

  // A generation that is the newest one.
  void Know(const BlockKind& kind);
  // One that replaces those before. What was forgotten takes long to delete.
  BlockIndex::Garbage Renew(const BlockKind& kind);
  // Null: it is not known.
  std::shared_ptr<KnownKind> Find(KindNumber number) const;
  std::vector<std::shared_ptr<KnownKind>> kinds() const;

  // Whether the tier has each of these keys, which follow each other.
  std::vector<bool> Have(const KnownKind& kind, std::string_view keys) const;
  bool Has(const BlockName& name) const;
  // As those of BlockIndex. BeginStore is false also for a kind that was
  // replaced: its blocks may have been copied before.
  bool BeginStore(const KnownKind& kind, const BlockName& name, uint64_t bytes,
                  std::vector<BlockName>& evicted);
  bool EndStore(const BlockName& name, bool is_written);
  void Touch(const BlockName& name);
  void Forget(const BlockName& name);

  // What earlier processes have stored, until EndStock. False: there is no
  // room, or its kind was renewed since the start.
  bool Restore(const BlockName& name, uint64_t bytes);
  void EndStock();

  struct Totals {
    uint64_t max_bytes;
    uint64_t bytes;
    uint64_t blocks;
  };
  Totals totals() const;

 private:
  std::shared_ptr<KnownKind> Add(const BlockKind& kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  BlockIndex index_ ABSL_GUARDED_BY(mutex_);
  absl::btree_map<KindNumber, std::shared_ptr<KnownKind>> kinds_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, std::shared_ptr<KnownKind>> newest_
      ABSL_GUARDED_BY(mutex_);
  bool takes_stock_ ABSL_GUARDED_BY(mutex_) = true;
  absl::flat_hash_set<uint64_t> renewed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_KEPT_BLOCKS_H_
