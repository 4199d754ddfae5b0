// One consistent picture of the cache, for operators, tests and benchmarks.
#ifndef PANDO_STATS_H_
#define PANDO_STATS_H_

#include <cstdint>

namespace pando {
inline namespace client {

// Pages by state.
struct PageStates {
  uint32_t free = 0;
  uint32_t reserved = 0;
  uint32_t evictable = 0;
  uint32_t protected_pages = 0;
  uint32_t quarantined = 0;
  uint32_t padding = 0;
  uint32_t capacity = 0;

  // Equals capacity: each page is in exactly one state.
  uint64_t Sum() const {
    return uint64_t{free} + reserved + evictable + protected_pages +
           quarantined + padding;
  }
};

// Counts since pandod started; proto/pando/v1/admin.proto says what each is.
struct CacheCounters {
  uint64_t matches = 0;
  uint64_t query_tokens = 0;
  uint64_t hit_tokens = 0;
  uint64_t inserts = 0;
  uint64_t inserted_pages = 0;
  uint64_t duplicate_pages = 0;
  uint64_t allocated_pages = 0;
  uint64_t evicted_pages_for_allocation = 0;
  uint64_t evicted_pages_on_request = 0;
  uint64_t allocation_failures = 0;
  uint64_t locks_taken = 0;
  uint64_t locks_released = 0;
  uint64_t sessions_opened = 0;
  uint64_t sessions_closed = 0;
  uint64_t sessions_lost = 0;
  uint64_t quarantined_pages = 0;
};

struct Stats {
  PageStates pages;
  CacheCounters counters;
  uint32_t sessions = 0;
  uint32_t locks = 0;
  uint32_t nodes = 0;
  uint32_t namespaces = 0;
  uint64_t epoch = 0;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_STATS_H_
