#ifndef PANDO_SERVICE_CACHE_METRICS_H_
#define PANDO_SERVICE_CACHE_METRICS_H_

#include <prometheus/collectable.h>

#include <vector>

#include "core/prefix_cache.h"
#include "service/self_check.h"

namespace pando {

// The metrics of the cache, made at each scrape from one consistent snapshot,
// so that pages by state always sum to the capacity. Owned by Server;
// thread-safe.
class CacheMetrics : public prometheus::Collectable {
 public:
  // All outlive this. `page_bytes` counts all shards.
  CacheMetrics(PrefixCache* cache, const SelfCheck* self_check,
               uint64_t page_bytes)
      : cache_(cache), self_check_(self_check), page_bytes_(page_bytes) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  PrefixCache* const cache_;
  const SelfCheck* const self_check_;
  const uint64_t page_bytes_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_CACHE_METRICS_H_
