// One consistent picture of the cache, for operators, tests and benchmarks.
#ifndef PANDO_STATS_H_
#define PANDO_STATS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pando/types.h"

namespace pando {
inline namespace client {

// How many pages are in each state; docs/design.md says what the states mean.
struct PageStates {
  uint32_t free = 0;
  uint32_t reserved = 0;
  uint32_t evictable = 0;
  uint32_t protected_pages = 0;
  uint32_t quarantined = 0;
  uint32_t padding = 0;
  uint32_t capacity = 0;

  // Always equals capacity, because each page is in exactly one state.
  uint64_t Sum() const {
    return uint64_t{free} + reserved + evictable + protected_pages +
           quarantined + padding;
  }
};

// The figures that a scheduler needs all the time: see Client::ReadGauges.
struct Gauges {
  PageStates pages;
  uint64_t epoch = 0;  // names the run, as in Stats
  // The server admits nothing new. Always false without a lane.
  bool is_draining = false;
  std::string eviction_policy;
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
  uint64_t evicted_pages_for_watermark = 0;
  uint64_t evicted_pages_for_quota = 0;
  uint64_t quota_rejections = 0;
  uint64_t pending_waits = 0;
  uint64_t pending_waits_published = 0;
  uint64_t pending_waits_given_up = 0;
  uint64_t pending_waits_timed_out = 0;
  uint64_t repeated_requests = 0;
};

// The pages of one quota class (a class of namespaces).
struct QuotaClass {
  // Empty for the class of all namespaces that no configured class names.
  std::string name;
  // Other classes never evict its cached pages below this number.
  uint32_t floor_pages = 0;
  // The most pages it may have, reserved ones included; unset: no limit.
  std::optional<uint32_t> cap_pages = {};
  uint32_t reserved_pages = 0;
  uint32_t cached_pages = 0;
  // The longest that inserts may retain what they publish.
  uint32_t max_retention_seconds = 0;
  // How often a retained leaf was spared when its turn to be evicted came.
  uint64_t spared_leaves = 0;
};

// Statistics of the reuse of pages, counted in whole pages of prompts.
struct ReuseStats {
  uint64_t requested_pages = 0;
  uint64_t hit_pages = 0;  // the requested pages that were cached
  // The pages that an LRU cache of the same size would have found.
  uint64_t lru_hit_pages = 0;
};

// The memory of the kinds of blocks whose labels match a quota.
struct BlockQuota {
  std::string name = {};
  // Kinds of other quotas take no memory from these kinds below this size.
  uint64_t floor_bytes = 0;
  // The most that these kinds get; unset: no limit.
  std::optional<uint64_t> cap_bytes = {};
  uint64_t used_bytes = 0;
};

// The block memory. Counts are since pandod started.
struct BlockFigures {
  uint64_t memory_bytes = 0;
  // The size of the extents that kinds have.
  uint64_t used_bytes = 0;
  uint32_t kinds = 0;
  // How many block locks and reservations are held.
  uint32_t locks = 0;
  uint32_t reservations = 0;
  // Blocks that are ready and not locked, that are locked, and that are being
  // written (or were, by a lost session).
  uint64_t evictable_blocks = 0;
  uint64_t protected_blocks = 0;
  uint64_t reserved_blocks = 0;
  // The reserved blocks to which a process of a lost session may still write.
  uint64_t quarantined_blocks = 0;
  // Keys of LookUp and Acquire that were ready, and that were missing.
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t published_blocks = 0;
  uint64_t evicted_blocks = 0;
  // How often a pandod took these blocks over from one that was killed, crashed
  // or was restarted under a keeper.
  uint64_t recoveries = 0;
  // The configured quotas; empty if the caller's credential is limited to
  // namespaces.
  std::vector<BlockQuota> quotas = {};
};

// A tier of pages. Counts are since pandod started.
struct TierFigures {
  Tier tier = Tier::kNone;
  // These are unset for a tier that many machines share.
  std::optional<uint64_t> capacity_pages = {};
  std::optional<uint64_t> held_pages = {};
  uint64_t page_bytes = 0;
  uint64_t stored_pages = 0;
  uint64_t loaded_pages = 0;
  // Pages that were not stored, because the tier was too slow or because they
  // were evicted before their turn.
  uint64_t dropped_pages = 0;
  // Reads and writes that failed, and pages that were read and were not what
  // had been stored.
  uint64_t failures = 0;
  // Whether stores, or loads, are not tried for a while because they failed
  // repeatedly.
  bool refuses_stores = false;
  bool refuses_loads = false;
};

// Whether a pando-mover copies the pages of a device.
struct MoverFigures {
  // "host", or a device of the pool.
  std::string device = {};
  bool is_present = false;
};

struct Stats {
  PageStates pages;
  CacheCounters counters;
  uint32_t sessions = 0;
  uint32_t locks = 0;
  uint32_t nodes = 0;
  uint32_t namespaces = 0;
  // Names the run: each process of pandod has another one. It may differ from
  // Client::epoch, which stays when sessions outlive pandod.
  uint64_t epoch = 0;
  std::string eviction_policy;
  // Matches that wait for a page that another request computes.
  uint32_t waiting_matches = 0;
  // Quarantined pages that a process is known to hold still. No time limit
  // frees them meanwhile.
  uint32_t held_pages = 0;
  // How often a pandod has taken the cached pages over from an earlier one.
  uint64_t page_recoveries = 0;
  // The configured classes, then the class of all other namespaces; empty when
  // no class is configured.
  std::vector<QuotaClass> quota_classes = {};
  // The version of pandod.
  std::string version;
  // The address of the console, such as "http://127.0.0.1:9464/console/"; empty
  // if there is none.
  std::string console_url = {};
  // It is set while pandod learns the reuse of pages.
  std::optional<ReuseStats> reuse = {};
  // It is unset if there is no block memory.
  std::optional<BlockFigures> blocks = {};
  // The tiers, the fastest first.
  std::vector<TierFigures> tiers = {};
  // The movers; empty if pandod copies the pages itself.
  std::vector<MoverFigures> movers = {};
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_STATS_H_
