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
  std::atomic<uint64_t> stored = 0;  // blocks
  std::atomic<uint64_t> loaded = 0;
};

// The kinds of the block memory, and which of their blocks the tier has.
// Owned by BlockTier. Thread-safe. Calls with many names are made in pieces, so
// that no hold of the mutex is long.
//
// Invariants: of a generation that was replaced nothing is found, whatever is
// still stored of it; so it is of one that was forgotten.
class KeptBlocks {
 public:
  // The most names that a call has, and the most blocks that it evicts.
  static constexpr size_t kMostNames = 256;
  // Twice as many as there can be at a time. The ones that were used least
  // recently are forgotten, and known again when a session opens them.
  static constexpr size_t kMostKnownKinds = 2 * size_t{kMaxKinds};

  KeptBlocks(uint64_t max_bytes, uint64_t max_blocks)
      : index_(max_bytes, max_blocks) {}

  // A generation that is the newest one.
  void Know(const BlockKind& kind);
  // One that replaces those before. Returns how many bytes the files of these
  // take, which count until Freed says otherwise; none: it is known.
  std::optional<uint64_t> Renew(const BlockKind& kind);
  // Null: it is not known.
  std::shared_ptr<KnownKind> Find(KindNumber number) const;
  // The same; it is in use.
  std::shared_ptr<KnownKind> Use(KindNumber number);
  std::vector<std::shared_ptr<KnownKind>> kinds() const;

  // Whether the tier has each of these, all of one kind.
  std::vector<bool> Have(const KnownKind& kind,
                         std::span<const BlockName> names) const;
  bool Has(const BlockName& name) const;

  enum class Begun {
    kYes,
    kNo,     // the tier has it, is too small, or its kind was replaced
    kAgain,  // some room was made, and more is needed
  };
  // A block is about to be written. Appends what made room to `evicted`: that
  // is found no more.
  Begun BeginStore(const KnownKind& kind, const BlockName& name, uint64_t bytes,
                   std::vector<BlockName>& evicted);
  // As those of BlockIndex.
  bool EndStore(const BlockName& name, bool is_written);
  bool HasRoom(uint64_t bytes) const;
  void Freed(uint64_t bytes);
  bool SweepSome();
  // In this order.
  void Touch(std::span<const BlockName> names);
  void Forget(const BlockName& name);

  // Takes in a block that an earlier process has stored, until EndStock; each
  // was used more recently than those before. False: there is no room, or its
  // kind was renewed since the start.
  bool Restore(const BlockName& name, uint64_t bytes);
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
