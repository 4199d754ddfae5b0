#ifndef PANDO_TESTS_CORE_STATS_FIELDS_H_
#define PANDO_TESTS_CORE_STATS_FIELDS_H_

#include <array>
#include <cstdint>
#include <ostream>

#include "base/cache_counters.h"
#include "core/journal/stats.h"

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

// Returns every number of `stats` with its name, always in the same order, so
// that tests can compare and print them.
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
#define PANDO_COUNTER(name) {#name, count.name},
      PANDO_FOR_EACH_CACHE_COUNTER(PANDO_COUNTER)
#undef PANDO_COUNTER
          {"kept_bytes", stats.kept_bytes},
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
