#ifndef PANDO_SERVICE_METRICS_REGRET_INDEX_H_
#define PANDO_SERVICE_METRICS_REGRET_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/event_log.h"
#include "core/measurements.h"

namespace pando {

// Pages that were evicted and then inserted again, with the same tokens after
// the same prefix: estimates.
struct RegretFigures {
  uint64_t refetched_pages = 0;
  // Of each of them: from its eviction to the insert.
  Histogram<kAgeSeconds> refetch_seconds;
};

// Follows what enters and leaves the cache, to tell what a larger one would
// have kept: a pool without limit finds what this one finds and, beside it,
// just the pages that had to be fetched again. Flushed pages do not count, as
// no pool keeps them.
//
// A page is known by a hash of all tokens up to its end. Of the evicted ones it
// remembers those whose hash says so (spatial sampling), each for as many as
// its share of all; when they are too many, half of them go and the others
// count twice from then on. So memory is bounded: 8 bytes for each page of the
// pool, and `max_samples` evicted ones. Owned by RegretMeter; not thread-safe.
class RegretIndex {
 public:
  static constexpr size_t kMaxSamples = 65'536;

  RegretIndex(uint32_t capacity_pages, uint32_t page_tokens,
              size_t max_samples = kMaxSamples)
      : page_tokens_(page_tokens),
        max_samples_(max_samples),
        hashes_(capacity_pages) {}

  // The next of PrefixCache::TakeChurn, taken at `now`.
  void Apply(const RawEvent& event, absl::Time now);

  const RegretFigures& figures() const { return figures_; }
  // So many evicted pages does each that is remembered stand for.
  uint64_t weight() const { return mask_ + 1; }
  size_t samples() const { return evicted_.size(); }

 private:
  // Zero: not known.
  using Hash = uint64_t;

  void Apply(const PagesStored& stored, absl::Time now);
  void Apply(const PagesRemoved& removed, absl::Time now);
  // Events were missed: what is not known stays so until it is stored anew.
  void Apply(const AllCleared&, absl::Time) {}
  Hash HashOfParent(const PagesStored& stored) const;
  void Fetched(Hash hash, absl::Time now);
  bool IsSampled(Hash hash) const { return (hash & mask_) == 0; }
  void HalveSample();

  const uint32_t page_tokens_;
  const size_t max_samples_;
  std::vector<Hash> hashes_;  // of each page of the pool that is cached
  uint64_t mask_ = 0;         // bits of a hash that are zero in the sample
  absl::flat_hash_map<Hash, absl::Time> evicted_;  // the sample: when
  RegretFigures figures_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_REGRET_INDEX_H_
