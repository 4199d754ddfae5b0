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

// A block. Its number stands for all tokens up to its end.
struct Block {
  uint64_t number;
  uint64_t ns_digest;
  uint32_t ordinal;
};

// Says for each block whether a LocalTier that one thread uses must have it, on
// disk or in memory. This reference is naive, and was written without a look at
// TierIndex. A block is absent, stored, or forgotten but not erased yet. Slots
// are only counted; they have no numbers here.
class ReferenceTier {
 public:
  explicit ReferenceTier(size_t slots) : slots_(slots) {}

  // Calls `meanwhile` after the blocks were written and before they are
  // confirmed.
  void Store(std::span<const Block> prompt, size_t begin, bool is_confirmed,
             const std::function<void()>& meanwhile);
  // Removes a block that was found to be damaged.
  void FindDamage(uint64_t number) { Remove(number); }
  void Touch(std::span<const Block> prompt);
  // Forgets the blocks of a namespace; without one, those of all namespaces.
  void Forget(std::optional<uint64_t> ns_digest);
  void EraseForgotten();
  // Stands for a process that ends before forgotten blocks are erased, and for
  // the next process, which finds all blocks in the order of their slots.
  void Restart(std::span<const uint64_t> by_slot);
  // Stands for a process that ends and loses all blocks.
  void Clear();
  // REQUIRES: there is a copy of the block.
  void Damage(uint64_t number) { damaged_.insert(number); }

  bool IsDamaged(uint64_t number) const { return damaged_.contains(number); }
  bool IsStored(uint64_t number) const { return stored_.contains(number); }
  bool IsIntact(uint64_t number) const {
    return IsStored(number) && !IsDamaged(number);
  }
  size_t stored() const { return stored_.size(); }
  // The blocks of which there is a copy, whether they can be found or not.
  std::set<uint64_t> Copies() const;

 private:
  bool HasSlot(uint64_t number) const;
  bool MakeRoom();
  void Remove(uint64_t number);

  const size_t slots_;
  std::map<uint64_t, Block> stored_;
  std::vector<uint64_t> by_use_;  // stored blocks, the oldest use first
  std::map<uint64_t, Block> forgotten_;
  std::map<uint64_t, Block> writing_;
  std::set<uint64_t> damaged_;
};

}  // namespace pando::tier_program

#endif  // PANDO_TESTS_TIERS_REFERENCE_TIER_H_
