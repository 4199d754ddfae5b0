#ifndef PANDO_SERVICE_METRICS_REGRET_INDEX_H_
#define PANDO_SERVICE_METRICS_REGRET_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/journal/event_log.h"
#include "core/journal/measurements.h"

namespace pando {

// Estimates of the pages that were evicted and then inserted again, with the
// same tokens after the same prefix.
struct RegretFigures {
  uint64_t refetched_pages = 0;
  // The time from a page's eviction to its next insert, for each of them.
  Histogram<kAgeSeconds> refetch_seconds;
};

// Estimates what a larger pool would have kept, from what enters and leaves the
// cache. A pool without limit would find what this one finds, plus exactly the
// pages that were inserted again after their eviction. Flushed pages do not
// count, because no pool would keep them.
//
// A page is known by a hash of all tokens up to its end. Only a sample of the
// evicted pages is remembered, chosen by their hashes (spatial sampling); each
// page of the sample stands for weight() pages. When the sample is full, half
// of it is dropped and the weight doubles. So memory is bounded: 8 bytes for
// each page of the pool, and `max_samples` evicted pages. Owned by RegretMeter;
// not thread-safe.
class RegretIndex {
 public:
  static constexpr size_t kMaxSamples = 65'536;

  RegretIndex(uint32_t capacity_pages, uint32_t page_tokens,
              size_t max_samples = kMaxSamples)
      : page_tokens_(page_tokens),
        max_samples_(max_samples),
        hashes_(capacity_pages) {}

  // Applies the next event of PrefixCache::TakeChurn, which was taken at time
  // `now`.
  void Apply(const RawEvent& event, absl::Time now);

  const RegretFigures& figures() const { return figures_; }
  // Returns how many evicted pages each page of the sample stands for.
  uint64_t weight() const { return mask_ + 1; }
  size_t samples() const { return evicted_.size(); }

 private:
  // The hash of all tokens up to a page's end. Zero: not known.
  using Hash = uint64_t;

  void Apply(const PagesStored& stored, absl::Time now);
  void Apply(const PagesHit&, absl::Time) {}
  void Apply(const PagesRemoved& removed, absl::Time now);
  // Events were missed. Pages that are unknown because of that stay unknown
  // until they are stored again.
  void Apply(const AllCleared&, absl::Time) {}
  Hash HashOfParent(const PagesStored& stored) const;
  void Fetched(Hash hash, absl::Time now);
  bool IsSampled(Hash hash) const { return (hash & mask_) == 0; }
  void HalveSample();

  const uint32_t page_tokens_;
  const size_t max_samples_;
  std::vector<Hash> hashes_;  // by page id; set for cached pages
  uint64_t mask_ = 0;         // the bits that are zero in hashes of the sample
  // The sample: when each of its pages was evicted.
  absl::flat_hash_map<Hash, absl::Time> evicted_;
  RegretFigures figures_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_REGRET_INDEX_H_
