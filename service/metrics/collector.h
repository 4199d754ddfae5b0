#ifndef PANDO_SERVICE_METRICS_COLLECTOR_H_
#define PANDO_SERVICE_METRICS_COLLECTOR_H_

#include <prometheus/collectable.h>

#include <atomic>
#include <string>
#include <vector>

#include "core/block_cache.h"
#include "core/prefix_cache.h"
#include "events/routers/kv_events.h"
#include "os/sockets/peer_filter.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/pending_matches.h"
#include "service/lane/lane_server.h"
#include "service/memory/page_verifier.h"
#include "service/metrics/regret_meter.h"
#include "service/metrics/snapshot.h"
#include "service/self_check.h"
#include "service/watches/events_service.h"
#include "tiers/blocks/block_tier.h"
#include "tiers/tiers.h"

namespace pando {

// Makes the metrics of the catalogue at each scrape, from one snapshot. The
// figures of the cache in it are all of one moment, so pages by state always
// sum to the capacity. Owned by Server; thread-safe.
class MetricsCollector : public prometheus::Collectable {
 public:
  // All pointers outlive the collector.
  struct Sources {
    PrefixCache* cache;
    BlockCache* blocks;
    const SelfCheck* self_check;
    const PageVerifier* verifier;  // null: no pages are verified
    const RegretMeter* regret;
    const PendingMatches* pending_matches;
    const EventsService* events;
    const KvEvents* kv_events;    // null: routers get no events
    const Tiers* tiers;           // null: there are none
    const BlockTier* block_tier;  // null: there is no such tier
    const RpcMetrics* rpc;
    const LaneServer* lanes;  // null: there are none
    const PeerFilter* peers;
    const std::atomic<bool>* is_draining;
    PoolFigures pool;
  };

  explicit MetricsCollector(Sources sources) : sources_(std::move(sources)) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  MetricsSnapshot Snapshot() const;

  const Sources sources_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_COLLECTOR_H_
