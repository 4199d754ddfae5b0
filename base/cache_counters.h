// The one list of the counters of the cache. The message CacheCounters in
// proto/pando/v1/admin.proto has fields of these names and says what each
// counts. Add a new counter there, here, and where the clients document theirs.
#ifndef PANDO_BASE_CACHE_COUNTERS_H_
#define PANDO_BASE_CACHE_COUNTERS_H_

#include <cstddef>

// Expands `COUNTER(name)` for each, in the order of the proto.
#define PANDO_FOR_EACH_CACHE_COUNTER(COUNTER) \
  COUNTER(matches)                            \
  COUNTER(query_tokens)                       \
  COUNTER(hit_tokens)                         \
  COUNTER(inserts)                            \
  COUNTER(inserted_pages)                     \
  COUNTER(duplicate_pages)                    \
  COUNTER(allocated_pages)                    \
  COUNTER(evicted_pages_for_allocation)       \
  COUNTER(evicted_pages_on_request)           \
  COUNTER(allocation_failures)                \
  COUNTER(locks_taken)                        \
  COUNTER(locks_released)                     \
  COUNTER(sessions_opened)                    \
  COUNTER(sessions_closed)                    \
  COUNTER(sessions_lost)                      \
  COUNTER(quarantined_pages)                  \
  COUNTER(evicted_pages_for_watermark)        \
  COUNTER(evicted_pages_for_quota)            \
  COUNTER(quota_rejections)                   \
  COUNTER(pending_waits)                      \
  COUNTER(pending_waits_published)            \
  COUNTER(pending_waits_given_up)             \
  COUNTER(pending_waits_timed_out)            \
  COUNTER(repeated_requests)

namespace pando {

// The number of counters.
#define PANDO_COUNTER(name) +1
inline constexpr size_t kCacheCounters =
    0 PANDO_FOR_EACH_CACHE_COUNTER(PANDO_COUNTER);
#undef PANDO_COUNTER

}  // namespace pando

#endif  // PANDO_BASE_CACHE_COUNTERS_H_
