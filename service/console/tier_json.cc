#include "service/console/tier_json.h"

#include <optional>

namespace pando {
namespace {

using nlohmann::json;

json TierJson(const char* name, const TierFigures& figures) {
  return {{"name", name},
          {"page_bytes", figures.page_bytes},
          {"stored_pages", figures.stored_pages},
          {"loaded_pages", figures.loaded_pages},
          {"dropped_pages", figures.dropped_pages},
          {"failures", figures.failed_reads + figures.failed_writes +
                           figures.damaged_pages},
          {"refuses_stores", figures.are_stores_refused},
          {"refuses_loads", figures.are_loads_refused}};
}

json LocalTierJson(const char* name, const TierFigures& figures) {
  json tier = TierJson(name, figures);
  tier["capacity_pages"] = figures.capacity_pages;
  tier["held_pages"] = figures.held_pages;
  return tier;
}

}  // namespace

json TiersJson(const Tiers& tiers) {
  json list = json::array();
  if (const auto host = tiers.host_figures(); host.has_value()) {
    list.push_back(LocalTierJson("host", *host));
  }
  if (const TierFigures disk = tiers.disk_figures(); disk.capacity_pages > 0) {
    list.push_back(LocalTierJson("disk", disk));
  }
  if (const auto shared = tiers.remote_figures(); shared.has_value()) {
    list.push_back(TierJson("shared", *shared));
  }
  return list;
}

json MoversJson(const Tiers& tiers) {
  json list = json::array();
  for (const auto& [device, is_there] : tiers.mover_presence()) {
    list.push_back({{"device", device}, {"is_present", is_there}});
  }
  return list;
}

}  // namespace pando
