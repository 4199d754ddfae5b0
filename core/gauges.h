#ifndef PANDO_CORE_GAUGES_H_
#define PANDO_CORE_GAUGES_H_

#include "core/eviction_policy.h"
#include "core/stats.h"
#include "core/stepped_work.h"

namespace pando {

// The part of the stats that workers read from shared memory, without a call.
struct CacheGauges {
  PageCounts pages;
  EvictionPolicyKind eviction_policy = EvictionPolicyKind::kLru;
};

// Reads the gauges, all of one moment, in one step.
class GaugeReading : public SteppedWork {
 public:
  bool Step(CacheParts& parts) override;
  const CacheGauges& result() const { return gauges_; }

 private:
  CacheGauges gauges_;
};

}  // namespace pando

#endif  // PANDO_CORE_GAUGES_H_
