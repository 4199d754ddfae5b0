#ifndef PANDO_CORE_BLOCKS_BLOCK_QUOTAS_H_
#define PANDO_CORE_BLOCKS_BLOCK_QUOTAS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/requests/block_requests.h"

namespace pando {

// The kinds whose labels match one quota, and how many extents they have
// together. Plain data, owned by BlockQuotas; BlockMemory counts `extents`.
struct QuotaShare {
  BlockQuota quota;
  uint32_t floor_extents = 0;
  uint32_t cap_extents = 0;
  uint32_t extents = 0;

  // Whether a kind of this share may have one more extent.
  bool MayGrow() const { return extents < cap_extents; }
  bool IsBelowFloor() const { return extents < floor_extents; }
  // Whether an extent may go to a kind of another share.
  bool MayShrink() const { return extents > floor_extents; }
};

// How the extents of the block memory are divided between kinds: a share for
// each quota, and one without limits for all other kinds.
//
// Owned by BlockTable; not thread-safe. Shares stay where they are.
class BlockQuotas {
 public:
  explicit BlockQuotas(const BlockOptions& options);

  // Changes the floors and caps. A share above its new cap keeps its extents
  // until other kinds take them. REQUIRES: names and labels are those of the
  // constructor.
  void SetLimits(const std::vector<BlockQuota>& quotas);
  // The share of the first quota that matches, or the one of all other kinds.
  // Kinds of one label always have the same share.
  QuotaShare& ShareOf(const std::string& label);

  // Visits all shares, also that of the kinds without a quota.
  template <typename F>
  void ForEach(F&& visit) const {
    for (const QuotaShare& share : shares_) visit(share);
  }
  // The quotas in their order, and how much memory each has.
  std::vector<BlockQuotaStats> Stats() const;

 private:
  const uint64_t extent_bytes_;
  std::vector<QuotaShare> shares_;  // the last one is that of other kinds
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_QUOTAS_H_
