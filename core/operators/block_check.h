#ifndef PANDO_CORE_OPERATORS_BLOCK_CHECK_H_
#define PANDO_CORE_OPERATORS_BLOCK_CHECK_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/parts/cache_parts.h"

namespace pando {

// The part of InvariantCheck that verifies blocks. It works in steps, between
// which the cache is in use. It checks each extent with its blocks, and each
// lock and reservation, as they are when their turn comes. At the end it
// compares sums over all of them, unless blocks have changed since it began.
class BlockCheck {
 public:
  // Does a bounded part, and appends a sentence for each invariant that does
  // not hold. Returns whether that was the last part.
  bool Step(const CacheParts& parts, std::vector<std::string>& violations);

 private:
  // The sums of one kind, or of all holds.
  struct Sums {
    uint64_t ready = 0;
    uint64_t locked = 0;
    uint64_t written = 0;
    uint64_t followers = 0;  // sum of BlockRecord::followers
    uint64_t links = 0;      // good links
    uint64_t found = 0;      // blocks in the index
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
  uint32_t next_hold_ = 0;  // the cell of the next hold
  uint32_t free_extents_ = 0;
  uint64_t locks_of_blocks_ = 0;
  uint64_t locks_of_holds_ = 0;
  uint64_t written_by_holds_ = 0;
  absl::flat_hash_map<KindNumber, Sums> by_kind_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_BLOCK_CHECK_H_
