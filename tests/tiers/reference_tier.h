#ifndef PANDO_TESTS_TIERS_REFERENCE_TIER_H_
#define PANDO_TESTS_TIERS_REFERENCE_TIER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace pando::tier_program {

// A block by its number, which names all tokens up to its end.
struct Block {
  uint64_t number;
  uint64_t ns_digest;
  uint32_t ordinal;
};

// Says of each block whether a LocalTier that is used by one thread must have
// it, on disk or in memory: naive, and written without a look at TierIndex. A
// block is nowhere, stored, or forgotten but not erased yet. Slots have no
// numbers here; there are only so many.
class ReferenceTier {
 public:
  explicit ReferenceTier(size_t slots) : slots_(slots) {}

  // `meanwhile` happens when the blocks are written and not yet confirmed.
  void Store(std::span<const Block> prompt, size_t begin, bool is_confirmed,
             const std::function<void()>& meanwhile);
  // A block that was found to be damaged.
  void FindDamage(uint64_t number) { Remove(number); }
  void Touch(std::span<const Block> prompt);
  // None: of all namespaces.
  void Forget(std::optional<uint64_t> ns_digest);
  void EraseForgotten();
  // A process that ends without erasing what was forgotten, and a new one,
  // which finds these blocks in the order of their slots.
  void Restart(std::span<const uint64_t> by_slot);
  // A process that ends with all its blocks.
  void Clear();
  // REQUIRES: there is a copy of it.
  void Damage(uint64_t number) { damaged_.insert(number); }

  bool IsDamaged(uint64_t number) const { return damaged_.contains(number); }
  bool IsStored(uint64_t number) const { return stored_.contains(number); }
  bool IsIntact(uint64_t number) const {
    return IsStored(number) && !IsDamaged(number);
  }
  size_t stored() const { return stored_.size(); }
  // The blocks of which there is a copy, found or not.
  std::set<uint64_t> Copies() const;

 private:
  bool HasSlot(uint64_t number) const;
  bool MakeRoom();
  void Remove(uint64_t number);

  const size_t slots_;
  std::map<uint64_t, Block> stored_;
  std::vector<uint64_t> by_use_;  // the stored ones, the oldest use first
  std::map<uint64_t, Block> forgotten_;
  std::map<uint64_t, Block> writing_;
  std::set<uint64_t> damaged_;
};

}  // namespace pando::tier_program

#endif  // PANDO_TESTS_TIERS_REFERENCE_TIER_H_
