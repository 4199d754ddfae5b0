#include "service/metrics/collector.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/visible_text.h"
#include "service/metrics/catalogue.h"

namespace pando {
namespace {

// More classes than this are shown as one, so that the number of series is
// bounded.
constexpr size_t kShownClasses = 8;
// Sessions beyond this number, in the order of their opening, are shown as one,
// too.
constexpr uint32_t kListedSessions = 32;
// More labels of kinds than this are shown as one, too.
constexpr size_t kListedKinds = 16;

void Add(const ClassTraffic& from, ClassTraffic& to) {
  to.query_tokens += from.query_tokens;
  to.hit_tokens += from.hit_tokens;
  to.loaded_hit_tokens += from.loaded_hit_tokens;
  to.full_matches += from.full_matches;
  to.partial_matches += from.partial_matches;
  to.missed_matches += from.missed_matches;
  to.quota_rejections += from.quota_rejections;
}

// Returns the figures of the quota classes. The last class of the cache, which
// has no name, is the one of all other namespaces.
std::vector<NamespaceClassFigures> ClassesOf(const CacheStats& cache) {
  const std::vector<ClassTraffic>& traffic = cache.measured.classes;
  const size_t configured = traffic.size() - 1;
  std::vector<NamespaceClassFigures> shown(std::min(configured, kShownClasses) +
                                           1);
  for (size_t c = 0; c < traffic.size(); ++c) {
    NamespaceClassFigures& to = shown[std::min(c, shown.size() - 1)];
    Add(traffic[c], to.traffic);
    if (configured == 0) continue;
    const QuotaClassStats& quota = cache.quota_classes[c];
    if (&to != &shown.back()) to.name = quota.name;
    to.reserved_pages += quota.reserved_pages;
    to.cached_pages += quota.cached_pages;
  }
  if (configured == 0) {
    shown.back().reserved_pages = cache.pages.reserved;
    shown.back().cached_pages =
        uint64_t{cache.pages.evictable} + cache.pages.protected_;
  }
  return shown;
}

// Returns `whole` without `part`. It is never negative, although the two were
// counted at different moments.
uint64_t Rest(uint64_t whole, uint64_t part) {
  return whole > part ? whole - part : 0;
}

std::string NameOf(const SessionInfo& session) {
  return session.client_name.empty() ? "unnamed"
                                     : VisibleText(session.client_name);
}

void Add(const WorkerFigures& from, WorkerFigures& to) {
  to.sessions += from.sessions;
  to.locks += from.locks;
  to.reserved_pages += from.reserved_pages;
}

// Returns the listed sessions of workers, where sessions of the same name are
// added up; the last entry is the sum of all others. pandod's own sessions are
// the oldest, and so are always listed.
std::vector<WorkerFigures> WorkersOf(const SessionList& listed,
                                     const CacheStats& cache) {
  const std::string others = WorkerFigures().name;
  std::map<std::string, WorkerFigures> by_name;
  WorkerFigures sum;
  for (const SessionInfo& session : listed.sessions) {
    const std::string name = NameOf(session);
    if (name == others) continue;
    const WorkerFigures held = {.sessions = 1,
                                .locks = session.locks,
                                .reserved_pages = session.reserved_pages};
    Add(held, sum);
    if (!session.is_internal) Add(held, by_name[name]);
  }
  std::vector<WorkerFigures> workers;
  for (auto& [name, figures] : by_name) {
    figures.name = name;
    workers.push_back(std::move(figures));
  }
  workers.push_back(
      {.name = others,
       .sessions = Rest(cache.sessions, sum.sessions),
       .locks = Rest(cache.locks, sum.locks),
       .reserved_pages = Rest(cache.pages.reserved, sum.reserved_pages)});
  return workers;
}

void Add(const KindCounters& from, BlockKindFigures& to) {
  to.hits += from.hits;
  to.misses += from.misses;
  to.evictions += from.evicted_blocks();
}

void Add(const KindStats& from, const BlockStats& blocks,
         BlockKindFigures& to) {
  to.bytes += from.extents * blocks.extent_bytes;
  to.ready_blocks += from.ready_blocks;
  Add(from.counters, to);
}

// Returns the listed kinds, where kinds of the same label are added up; the
// last entry is the sum of all others.
std::vector<BlockKindFigures> BlockKindsOf(const BlockStats& blocks,
                                           const BlockTiersFigures& tiers) {
  BlockKindFigures others;
  Add(blocks.ended_kinds, others);
  others.stored = tiers.disk.stored_blocks;
  others.loaded = tiers.disk.loaded_blocks;
  if (tiers.shared.has_value()) {
    others.stored += tiers.shared->stored_blocks;
    others.loaded += tiers.shared->loaded_blocks;
  }
  std::map<std::string, BlockKindFigures> by_name;
  for (size_t i = 0; i < blocks.kinds.size(); ++i) {
    const std::string& label = blocks.kinds[i].kind.spec.label;
    const std::string name = label.empty() ? "unnamed" : VisibleText(label);
    const bool is_listed = i < kListedKinds && name != others.name;
    Add(blocks.kinds[i], blocks, is_listed ? by_name[name] : others);
    const auto copied =
        std::ranges::find(tiers.kinds, blocks.kinds[i].kind.number,
                          &BlockTiersFigures::OfKind::kind);
    if (!is_listed || copied == tiers.kinds.end()) continue;
    by_name[name].stored += copied->stored;
    by_name[name].loaded += copied->loaded;
    others.stored = Rest(others.stored, copied->stored);
    others.loaded = Rest(others.loaded, copied->loaded);
  }
  std::vector<BlockKindFigures> kinds;
  for (auto& [name, figures] : by_name) {
    figures.name = name;
    kinds.push_back(std::move(figures));
  }
  kinds.push_back(std::move(others));
  return kinds;
}

}  // namespace

std::vector<prometheus::MetricFamily> MetricsCollector::Collect() const {
  const MetricsSnapshot snapshot = Snapshot();
  std::vector<prometheus::MetricFamily> families;
  for (const MetricGroup& group : MetricCatalogue()) {
    for (const Metric& metric : group.metrics) {
      families.push_back(CollectMetric(metric, snapshot));
    }
  }
  return families;
}

MetricsSnapshot MetricsCollector::Snapshot() const {
  CacheStats cache = sources_.cache->Stats();
  std::vector<NamespaceClassFigures> classes = ClassesOf(cache);
  std::vector<WorkerFigures> workers =
      WorkersOf(sources_.cache->ListSessions(kListedSessions), cache);
  BlockStats blocks = sources_.blocks->Stats();
  BlockTiersFigures block_tiers = sources_.block_tier == nullptr
                                      ? BlockTiersFigures()
                                      : sources_.block_tier->figures();
  std::vector<BlockKindFigures> block_kinds = BlockKindsOf(blocks, block_tiers);
  return {
      .cache = std::move(cache),
      .classes = std::move(classes),
      .workers = std::move(workers),
      .blocks = std::move(blocks),
      .block_kinds = std::move(block_kinds),
      .is_draining = *sources_.is_draining,
      .regret = sources_.regret->Figures(),
      .pending_wait_seconds = sources_.pending_matches->wait_seconds(),
      .dropped_events = sources_.events->dropped_events(),
      .kv_events = sources_.kv_events == nullptr
                       ? KvEventFigures()
                       : sources_.kv_events->figures(),
      .host_tier = sources_.tiers == nullptr ? std::nullopt
                                             : sources_.tiers->host_figures(),
      .disk_tier = sources_.tiers == nullptr ? TierFigures()
                                             : sources_.tiers->disk_figures(),
      .remote_tier = sources_.tiers == nullptr
                         ? std::nullopt
                         : sources_.tiers->remote_figures(),
      .movers = sources_.tiers == nullptr ? std::vector<PageMovers::Presence>()
                                          : sources_.tiers->mover_presence(),
      .invariant_violations = sources_.self_check->violations(),
      .verified_pages = sources_.verifier == nullptr
                            ? PageVerifier::Counts()
                            : sources_.verifier->counts(),
      .methods = sources_.rpc->Figures(),
      .lanes =
          sources_.lanes == nullptr ? LaneFigures() : sources_.lanes->figures(),
      .refused_connections = sources_.peers->refused(),
      .pool = sources_.pool,
      .process = ReadProcessFigures(),
      .block_tiers = std::move(block_tiers)};
}

}  // namespace pando
