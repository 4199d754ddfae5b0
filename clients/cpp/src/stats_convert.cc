#include "base/cache_counters.h"
#include "clients/cpp/src/convert.h"

namespace pando {
inline namespace client {
namespace {

PageStates Read(const v1::PageStates& pages) {
  return {.free = pages.free(),
          .reserved = pages.reserved(),
          .evictable = pages.evictable(),
          .protected_pages = pages.protected_(),
          .quarantined = pages.quarantined(),
          .padding = pages.padding(),
          .capacity = pages.capacity()};
}

CacheCounters Read(const v1::CacheCounters& counters) {
  CacheCounters out;
#define PANDO_COUNTER(name) out.name = counters.name();
  PANDO_FOR_EACH_CACHE_COUNTER(PANDO_COUNTER)
#undef PANDO_COUNTER
  static_assert(sizeof(out) == kCacheCounters * sizeof(uint64_t),
                "base/cache_counters.h and pando/stats.h differ");
  return out;
}

QuotaClass Read(const v1::QuotaClass& quota) {
  QuotaClass out{.name = quota.name(),
                 .floor_pages = quota.floor_pages(),
                 .reserved_pages = quota.reserved_pages(),
                 .cached_pages = quota.cached_pages(),
                 .max_retention_seconds = quota.max_retention_seconds(),
                 .spared_leaves = quota.spared_leaves()};
  if (quota.has_cap_pages()) out.cap_pages = quota.cap_pages();
  return out;
}

ReuseStats Read(const v1::ReuseStats& reuse) {
  return {.requested_pages = reuse.requested_pages(),
          .hit_pages = reuse.hit_pages(),
          .lru_hit_pages = reuse.lru_hit_pages()};
}

BlockQuota Read(const v1::BlockQuota& quota) {
  BlockQuota out{.name = quota.name(),
                 .floor_bytes = quota.floor_bytes(),
                 .used_bytes = quota.used_bytes()};
  if (quota.has_cap_bytes()) out.cap_bytes = quota.cap_bytes();
  return out;
}

BlockFigures Read(const v1::BlockFigures& blocks) {
  BlockFigures out{.memory_bytes = blocks.memory_bytes(),
                   .used_bytes = blocks.used_bytes(),
                   .kinds = blocks.kinds(),
                   .locks = blocks.locks(),
                   .reservations = blocks.reservations(),
                   .evictable_blocks = blocks.evictable_blocks(),
                   .protected_blocks = blocks.protected_blocks(),
                   .reserved_blocks = blocks.reserved_blocks(),
                   .quarantined_blocks = blocks.quarantined_blocks(),
                   .hits = blocks.hits(),
                   .misses = blocks.misses(),
                   .published_blocks = blocks.published_blocks(),
                   .evicted_blocks = blocks.evicted_blocks(),
                   .recoveries = blocks.recoveries()};
  for (const v1::BlockQuota& quota : blocks.quotas()) {
    out.quotas.push_back(Read(quota));
  }
  return out;
}

TierFigures Read(const v1::TierFigures& tier) {
  TierFigures out{.tier = client::FromProto(tier.tier()),
                  .page_bytes = tier.page_bytes(),
                  .stored_pages = tier.stored_pages(),
                  .loaded_pages = tier.loaded_pages(),
                  .dropped_pages = tier.dropped_pages(),
                  .failures = tier.failures(),
                  .refuses_stores = tier.refuses_stores(),
                  .refuses_loads = tier.refuses_loads()};
  if (tier.has_capacity_pages()) out.capacity_pages = tier.capacity_pages();
  if (tier.has_held_pages()) out.held_pages = tier.held_pages();
  return out;
}

MoverFigures Read(const v1::MoverFigures& mover) {
  return {.device = mover.device(), .is_present = mover.is_present()};
}

}  // namespace

Stats FromProto(const v1::GetStatsResponse& stats) {
  Stats out{.pages = Read(stats.pages()),
            .counters = Read(stats.counters()),
            .sessions = stats.sessions(),
            .locks = stats.locks(),
            .nodes = stats.nodes(),
            .namespaces = stats.namespaces(),
            .epoch = stats.epoch(),
            .eviction_policy = stats.eviction_policy(),
            .waiting_matches = stats.waiting_matches(),
            .held_pages = stats.held_pages(),
            .page_recoveries = stats.page_recoveries(),
            .version = stats.version(),
            .console_url = stats.console_url()};
  for (const v1::QuotaClass& quota : stats.quota_classes()) {
    out.quota_classes.push_back(Read(quota));
  }
  if (stats.has_reuse()) out.reuse = Read(stats.reuse());
  if (stats.has_blocks()) out.blocks = Read(stats.blocks());
  for (const v1::TierFigures& tier : stats.tiers()) {
    out.tiers.push_back(Read(tier));
  }
  for (const v1::MoverFigures& mover : stats.movers()) {
    out.movers.push_back(Read(mover));
  }
  return out;
}

}  // namespace client
}  // namespace pando
