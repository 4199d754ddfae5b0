#ifndef PANDO_CORE_OPERATORS_GAUGES_H_
#define PANDO_CORE_OPERATORS_GAUGES_H_

#include "core/eviction/eviction_policy.h"
#include "core/journal/stats.h"
#include "core/parts/stepped_work.h"

namespace pando {

// The part of CacheStats that workers read from shared memory, without a call.
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

#endif  // PANDO_CORE_OPERATORS_GAUGES_H_
