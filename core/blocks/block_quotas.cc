#include "core/blocks/block_quotas.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "core/requests/name_pattern.h"

namespace pando {
namespace {

constexpr uint32_t kNoCap = std::numeric_limits<uint32_t>::max();

uint32_t Extents(uint64_t bytes, uint64_t extent_bytes) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(bytes / extent_bytes, kNoCap));
}

}  // namespace

BlockQuotas::BlockQuotas(const BlockOptions& options)
    : extent_bytes_(options.extent_bytes), shares_(options.quotas.size() + 1) {
  SetLimits(options.quotas);
  shares_.back().cap_extents = kNoCap;
}

void BlockQuotas::SetLimits(const std::vector<BlockQuota>& quotas) {
  CHECK(quotas.size() + 1 == shares_.size());
  for (size_t i = 0; i < quotas.size(); ++i) {
    QuotaShare& share = shares_[i];
    share.quota = quotas[i];
    share.floor_extents = Extents(quotas[i].floor_bytes, extent_bytes_);
    share.cap_extents = quotas[i].cap_bytes
                            ? Extents(*quotas[i].cap_bytes, extent_bytes_)
                            : kNoCap;
  }
}

QuotaShare& BlockQuotas::ShareOf(const std::string& label) {
  return *std::find_if(shares_.begin(), shares_.end() - 1,
                       [&](const QuotaShare& share) {
                         return MatchesPattern(share.quota.label, label);
                       });
}

std::vector<BlockQuotaStats> BlockQuotas::Stats() const {
  std::vector<BlockQuotaStats> stats;
  for (size_t i = 0; i + 1 < shares_.size(); ++i) {
    stats.push_back({.quota = shares_[i].quota,
                     .used_bytes = shares_[i].extents * extent_bytes_});
  }
  return stats;
}

}  // namespace pando
