#ifndef PANDO_CORE_BLOCK_CALLS_BLOCK_REPORTS_H_
#define PANDO_CORE_BLOCK_CALLS_BLOCK_REPORTS_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "core/block_calls/block_call.h"
#include "core/parts/stepped_work.h"
#include "core/requests/block_requests.h"

namespace pando {

// Implements BlockCache::Stats, in steps. The totals are those of the first
// step. Kinds that are made or deleted meanwhile may be in the list or not.
class BlockCensus : public SteppedWork {
 public:
  bool Step(CacheParts& parts) override;
  BlockStats Take() { return std::move(stats_); }

 private:
  void TakeTotals(const CacheParts& parts);

  bool has_totals_ = false;
  KindNumber last_;
  BlockStats stats_;
};

// Implements BlockCache::Explain. The search for the session that writes a
// block takes steps.
class BlockInquiry : public SteppedWork {
 public:
  // The memory that `key` refers to outlives this.
  BlockInquiry(KindNumber kind, std::string_view key)
      : kind_(kind), key_(key) {}

  bool Step(CacheParts& parts) override;
  // REQUIRES: the last Step returned true.
  absl::StatusOr<BlockExplanation> Take() { return std::move(result_); }

 private:
  absl::StatusOr<BlockExplanation> Look(const CacheParts& parts) const;
  // Searches some more holds for the writer. Returns whether the search is
  // over.
  bool FindWriter(const CacheParts& parts);

  const KindNumber kind_;
  const std::string_view key_;
  bool has_looked_ = false;
  uint32_t next_ = 0;  // the cell of the next hold
  absl::StatusOr<BlockExplanation> result_ = BlockExplanation();
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCK_CALLS_BLOCK_REPORTS_H_
