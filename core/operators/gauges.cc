#include "core/operators/gauges.h"

namespace pando {

bool GaugeReading::Step(CacheParts& parts) {
  const RadixTree& tree = parts.tree;
  const PagePool& pool = parts.pool;
  gauges_ = {.pages = {.free = pool.count(PageState::kFree),
                       .reserved = pool.count(PageState::kReserved),
                       .evictable = tree.evictable_pages(),
                       .protected_ = tree.protected_pages(),
                       .quarantined = pool.count(PageState::kQuarantined),
                       .padding = pool.count(PageState::kPadding),
                       .capacity = pool.capacity()},
             .eviction_policy = tree.policy()};
  return true;
}

}  // namespace pando
