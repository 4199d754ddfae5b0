#ifndef PANDO_CORE_OPERATORS_BLOCK_CHECK_H_
#define PANDO_CORE_OPERATORS_BLOCK_CHECK_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/parts/cache_parts.h"

namespace pando {

// The part of InvariantCheck that verifies blocks, in steps, between which the
// cache is in use: each extent with its blocks, each lock and reservation, as
// they are when their turn comes. Sums over all of them are compared at the end
// unless blocks changed meanwhile.
class BlockCheck {
 public:
  // Does a bounded part, and appends a sentence for each invariant that does
  // not hold. Returns whether it was the last.
  bool Step(const CacheParts& parts, std::vector<std::string>& violations);

 private:
  // The sums of one kind, or of all holds.
  struct Sums {
    uint64_t ready = 0;
    uint64_t locked = 0;
    uint64_t written = 0;
    uint64_t followers = 0;  // as blocks count them
    uint64_t links = 0;      // that are good
    uint64_t found = 0;      // blocks that are in the index
    uint64_t leaves = 0;
  };

  void CheckExtent(const CacheParts& parts, uint32_t number);
  void CheckBlock(const BlockTable& blocks, BlockNumber block, Sums& sums);
  void CheckHold(const BlockTable& blocks, const BlockHold& hold);
  void CheckTotals(const CacheParts& parts);
  void Expect(bool holds, const char* what) {
    if (!holds) violations_->emplace_back(what);
  }

  std::vector<std::string>* violations_ = nullptr;  // during a step
  uint64_t changes_ = 0;                            // BlockTable::changes
  uint32_t next_extent_ = 0;
  uint32_t next_hold_ = 0;  // its cell
  uint32_t free_extents_ = 0;
  uint64_t locks_of_blocks_ = 0;
  uint64_t locks_of_holds_ = 0;
  uint64_t written_by_holds_ = 0;
  absl::flat_hash_map<KindNumber, Sums> by_kind_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_BLOCK_CHECK_H_
