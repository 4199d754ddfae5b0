#ifndef PANDO_SERVICE_METRICS_SNAPSHOT_H_
#define PANDO_SERVICE_METRICS_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/journal/stats.h"
#include "core/requests/block_requests.h"
#include "events/routers/kv_event_figures.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/pending_matches.h"
#include "service/lane/lane_figures.h"
#include "service/memory/page_verifier.h"
#include "service/metrics/process_figures.h"
#include "service/metrics/regret_index.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/copying/page_movers.h"
#include "tiers/tier_figures.h"

namespace pando {

// The figures of the pool that never change.
struct PoolFigures {
  uint64_t page_bytes = 0;  // bytes of one page in all shards together
  uint32_t page_tokens = 0;
  uint32_t shards = 0;
  std::string device;
  std::string dtype;
  std::string layout;   // the order of memory, or "open" or "none"
  uint32_t layers = 0;  // 0: the pool has no layout
  uint32_t heads = 0;   // 0: no layout, or opaque pages
  uint32_t head_size = 0;
  std::string model;
};

// The namespaces of one quota class, or of several that are shown as one.
struct NamespaceClassFigures {
  std::string name = "other";
  ClassTraffic traffic;
  uint64_t reserved_pages = 0;
  uint64_t cached_pages = 0;
};

// The workers of one name, or of several names that are shown as one.
struct WorkerFigures {
  std::string name = "other";
  uint64_t sessions = 0;
  uint64_t locks = 0;
  uint64_t reserved_pages = 0;
};

// The kinds of blocks of one label, or of several labels that are shown as one.
struct BlockKindFigures {
  std::string name = "other";
  uint64_t bytes = 0;
  uint64_t ready_blocks = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t evictions = 0;
  uint64_t stored = 0;  // blocks stored in the disk tier
  uint64_t loaded = 0;  // blocks loaded from the disk tier
};

// Everything that the metrics are made from, at one scrape.
struct MetricsSnapshot {
  CacheStats cache;  // all of one moment
  // The last one is "other".
  std::vector<NamespaceClassFigures> classes{1};
  // The last one is "other".
  std::vector<WorkerFigures> workers{1};
  BlockStats blocks;
  // The last one is "other".
  std::vector<BlockKindFigures> block_kinds{1};
  bool is_draining = false;
  RegretFigures regret;
  Histogram<kPendingWaitSeconds> pending_wait_seconds;
  uint64_t dropped_events = 0;
  KvEventFigures kv_events;
  // None if there is no such tier. The figures of the disk tier always exist.
  std::optional<TierFigures> host_tier;
  TierFigures disk_tier;
  std::optional<TierFigures> remote_tier;
  std::vector<PageMovers::Presence> movers;
  uint64_t invariant_violations = 0;
  PageVerifier::Counts verified_pages;
  std::vector<MethodFigures> methods;
  LaneFigures lanes;
  uint64_t refused_connections = 0;
  PoolFigures pool;
  ProcessFigures process;
  BlockTiersFigures block_tiers;
};

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_SNAPSHOT_H_
