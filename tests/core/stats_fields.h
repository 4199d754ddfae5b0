#ifndef PANDO_TESTS_CORE_STATS_FIELDS_H_
#define PANDO_TESTS_CORE_STATS_FIELDS_H_

#include <array>
#include <cstdint>
#include <ostream>

#include "core/stats.h"

namespace pando {

struct StatsField {
  const char* name;
  uint64_t value;

  friend bool operator==(const StatsField& a, const StatsField& b) {
    return a.value == b.value;
  }
  friend std::ostream& operator<<(std::ostream& out, const StatsField& field) {
    return out << field.name << " = " << field.value;
  }
};

// Every number of `stats` with its name, always in the same order: to compare
// and to print.
inline auto StatsFields(const CacheStats& stats) {
  const PageCounts& pages = stats.pages;
  const CacheCounters& count = stats.counters;
  return std::to_array<StatsField>({
      {"pages.free", pages.free},
      {"pages.reserved", pages.reserved},
      {"pages.evictable", pages.evictable},
      {"pages.protected", pages.protected_},
      {"pages.quarantined", pages.quarantined},
      {"pages.padding", pages.padding},
      {"pages.capacity", pages.capacity},
      {"matches", count.matches},
      {"query_tokens", count.query_tokens},
      {"hit_tokens", count.hit_tokens},
      {"inserts", count.inserts},
      {"inserted_pages", count.inserted_pages},
      {"duplicate_pages", count.duplicate_pages},
      {"allocated_pages", count.allocated_pages},
      {"evicted_pages_for_allocation", count.evicted_pages_for_allocation},
      {"evicted_pages_on_request", count.evicted_pages_on_request},
      {"allocation_failures", count.allocation_failures},
      {"locks_taken", count.locks_taken},
      {"locks_released", count.locks_released},
      {"sessions_opened", count.sessions_opened},
      {"sessions_closed", count.sessions_closed},
      {"sessions_lost", count.sessions_lost},
      {"quarantined_pages", count.quarantined_pages},
      {"evicted_pages_for_watermark", count.evicted_pages_for_watermark},
      {"evicted_pages_for_quota", count.evicted_pages_for_quota},
      {"quota_rejections", count.quota_rejections},
      {"pending_waits", count.pending_waits},
      {"pending_waits_published", count.pending_waits_published},
      {"pending_waits_given_up", count.pending_waits_given_up},
      {"pending_waits_timed_out", count.pending_waits_timed_out},
      {"repeated_requests", count.repeated_requests},
      {"held_tokens", stats.held_tokens},
      {"sessions", stats.sessions},
      {"locks", stats.locks},
      {"nodes", stats.nodes},
      {"namespaces", stats.namespaces},
      {"waits", stats.waits},
      {"held_pages", stats.held_pages},
      {"eviction_policy", static_cast<uint64_t>(stats.eviction_policy)},
  });
}

using StatsSnapshot = decltype(StatsFields(CacheStats()));

}  // namespace pando

#endif  // PANDO_TESTS_CORE_STATS_FIELDS_H_
