#ifndef PANDO_TESTS_SERVICE_TIERS_REFERENCE_TIER_H_
#define PANDO_TESTS_SERVICE_TIERS_REFERENCE_TIER_H_

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

// Says of each block whether it is on disk, as a LocalTier that is used by one
// thread must: naive, and written without a look at TierIndex. A block is
// nowhere, stored, or forgotten but not erased yet. Slots have no numbers here;
// there are only so many.
class ReferenceTier {
 public:
  explicit ReferenceTier(size_t slots) : slots_(slots) {}

  // `meanwhile` happens when the blocks are written and not yet confirmed.
  void Store(std::span<const Block> prompt, size_t begin, bool is_confirmed,
             const std::function<void()>& meanwhile);
  // How many of `run` can be loaded, from the front. What is damaged of the
  // others is found out, too.
  size_t Load(std::span<const Block> run);
  void Touch(std::span<const Block> prompt);
  // None: of all namespaces.
  void Forget(std::optional<uint64_t> ns_digest);
  void EraseForgotten();
  // A process that ends without erasing what was forgotten, and a new one,
  // which finds these blocks in the order of their slots.
  void Restart(std::span<const uint64_t> by_slot);
  // REQUIRES: it is on disk.
  void Damage(uint64_t number) { damaged_.insert(number); }

  bool IsDamaged(uint64_t number) const { return damaged_.contains(number); }
  bool IsStored(uint64_t number) const { return stored_.contains(number); }
  size_t stored() const { return stored_.size(); }
  // The blocks of which there is a copy on disk, found or not.
  std::set<uint64_t> OnDisk() const;

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

#endif  // PANDO_TESTS_SERVICE_TIERS_REFERENCE_TIER_H_
