#ifndef PANDO_CORE_REQUESTS_EVICTION_REASON_H_
#define PANDO_CORE_REQUESTS_EVICTION_REASON_H_

#include <cstddef>

namespace pando {

// Why pages were evicted; see EvictionReason in proto/pando/v1/types.proto.
enum class EvictionReason {
  kAllocation,
  kRequest,
  kWatermark,
  kQuota,
  kFlush,
};
inline constexpr size_t kEvictionReasons = 5;

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_EVICTION_REASON_H_
