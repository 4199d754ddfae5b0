#include "service/handlers/tier_wire.h"

namespace pando {
namespace {

void FillTier(v1::Tier tier, const TierFigures& figures, v1::TierFigures* out) {
  out->set_tier(tier);
  if (tier != v1::TIER_SHARED) {
    out->set_capacity_pages(figures.capacity_pages);
    out->set_held_pages(figures.held_pages);
  }
  out->set_page_bytes(figures.page_bytes);
  out->set_stored_pages(figures.stored_pages);
  out->set_loaded_pages(figures.loaded_pages);
  out->set_dropped_pages(figures.dropped_pages);
  out->set_failures(figures.failed_reads + figures.failed_writes +
                    figures.damaged_pages);
  out->set_refuses_stores(figures.are_stores_refused);
  out->set_refuses_loads(figures.are_loads_refused);
}

}  // namespace

void FillTiers(const Tiers& tiers, v1::GetStatsResponse* out) {
  if (const auto host = tiers.host_figures(); host.has_value()) {
    FillTier(v1::TIER_HOST, *host, out->add_tiers());
  }
  if (const TierFigures disk = tiers.disk_figures(); disk.capacity_pages > 0) {
    FillTier(v1::TIER_DISK, disk, out->add_tiers());
  }
  if (const auto shared = tiers.remote_figures(); shared.has_value()) {
    FillTier(v1::TIER_SHARED, *shared, out->add_tiers());
  }
  for (const PageMovers::Presence& mover : tiers.mover_presence()) {
    v1::MoverFigures& added = *out->add_movers();
    added.set_device(mover.device);
    added.set_is_present(mover.is_there);
  }
}

}  // namespace pando
