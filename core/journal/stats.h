#ifndef PANDO_CORE_JOURNAL_STATS_H_
#define PANDO_CORE_JOURNAL_STATS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/cache_counters.h"
#include "core/eviction/eviction_policy.h"
#include "core/journal/measurements.h"
#include "core/reuse/reuse_class.h"

namespace pando {

// The number of pages in each state; they sum to `capacity`.
struct PageCounts {
  uint32_t free = 0;
  uint32_t reserved = 0;
  uint32_t evictable = 0;
  uint32_t protected_ = 0;
  uint32_t quarantined = 0;
  uint32_t padding = 0;
  uint32_t capacity = 0;
};

// Counts since the start. base/cache_counters.h lists them.
struct CacheCounters {
#define PANDO_COUNTER(name) uint64_t name = 0;
  PANDO_FOR_EACH_CACHE_COUNTER(PANDO_COUNTER)
#undef PANDO_COUNTER
};

// The pages of one quota class; see QuotaClass.
struct QuotaClassStats {
  std::string name;
  uint32_t floor_pages = 0;
  std::optional<uint32_t> cap_pages;
  uint32_t reserved_pages = 0;
  uint32_t cached_pages = 0;
  uint16_t max_retention_seconds = 0;
  // How often eviction spared a retained leaf.
  uint64_t spared_leaves = 0;
};

// Figures of ReuseLearner, in pages.
struct ReuseStats {
  uint64_t requested_pages = 0;
  // Requested pages that were cached.
  uint64_t hit_pages = 0;
  // Requested pages that an LRU cache of the same size would have had.
  uint64_t lru_hit_pages = 0;
  // Hits of the cache above those of LRU; capped at the capacity.
  int64_t gained_pages = 0;
  // Pages that LRU would hold and the cache does not, and the limit for them.
  uint64_t debt_pages = 0;
  uint64_t debt_limit_pages = 0;
  // Pages that were inserted again after their eviction.
  uint64_t ghost_hit_pages = 0;
  uint32_t ghosts = 0;
  // ReuseTables::ChanceByUses of each level of uses.
  std::array<double, kUsesLevels> chance_by_uses{};

  friend bool operator==(const ReuseStats&, const ReuseStats&) = default;
};

// One consistent picture of the cache.
struct CacheStats {
  PageCounts pages;
  CacheCounters counters;
  uint32_t sessions = 0;
  uint32_t locks = 0;
  uint32_t nodes = 0;
  uint32_t namespaces = 0;
  uint32_t waits = 0;
  uint64_t kept_bytes = 0;         // for all sessions
  uint32_t held_pages = 0;         // quarantined, with a writer known to live
  uint64_t recoveries = 0;         // takings over of the ledger of pages
  absl::Duration oldest_lock_age;  // zero: no lock is held
  EvictionPolicyKind eviction_policy = EvictionPolicyKind::kLru;
  std::optional<ReuseStats> reuse;  // set while there is a learner
  // Empty if no class is configured.
  std::vector<QuotaClassStats> quota_classes;
  Measurements measured;
};

}  // namespace pando

#endif  // PANDO_CORE_JOURNAL_STATS_H_
