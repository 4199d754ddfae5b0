// pandoctl fleet: several machines side by side.

#include "tools/pandoctl/fleet.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// One look at one machine.
struct Look {
  std::string health;
  v1::GetStatsResponse stats;
  v1::PoolDescription pool;
};

absl::StatusOr<Look> LookAt(Server& server) {
  Look look;
  ASSIGN_OR_RETURN(look.stats, server.Ask(v1::GetStatsRequest()));
  ASSIGN_OR_RETURN(const v1::DescribePoolResponse pool,
                   server.Ask(v1::DescribePoolRequest()));
  look.pool = pool.pool();
  ASSIGN_OR_RETURN(look.health, server.Health(""));
  return look;
}

std::vector<std::string> RowOf(const Machine& machine,
                               const absl::StatusOr<Look>& look) {
  if (!look.ok()) {
    return {machine.name, "does not answer", "", "", "", "", "", "", ""};
  }
  const v1::PageStates& pages = look->stats.pages();
  const v1::CacheCounters& counters = look->stats.counters();
  return {machine.name,
          look->health,
          look->stats.version(),
          look->pool.model().empty() ? "-" : NameText(look->pool.model()),
          PercentText(counters.hit_tokens(), counters.query_tokens()),
          absl::StrCat(pages.free()),
          absl::StrCat(pages.evictable()),
          absl::StrCat(pages.protected_()),
          absl::StrCat(look->stats.sessions())};
}

Json JsonOf(const Machine& machine, const absl::StatusOr<Look>& look) {
  Json json = {{"address", machine.name}};
  if (!look.ok()) {
    json["error"] = std::string(look.status().message());
    return json;
  }
  json["health"] = look->health;
  json["stats"] = ToJson(look->stats);
  json["pool"] = ToJson(look->pool);
  return json;
}

}  // namespace

absl::Status Fleet(const Context& context) {
  ASSIGN_OR_RETURN(const std::vector<Machine> machines,
                   FindMachines(context.options));
  const std::vector<absl::StatusOr<Look>> looks = AskAll(machines, LookAt);
  Table table({"MACHINE", "HEALTH", "VERSION", "MODEL", "HIT%", "FREE",
               "EVICTABLE", "PROTECTED", "SESSIONS"});
  Json json = Json::array();
  for (size_t i = 0; i < machines.size(); ++i) {
    table.Add(RowOf(machines[i], looks[i]));
    json.push_back(JsonOf(machines[i], looks[i]));
  }
  if (context.output.is_table()) {
    context.output.Print(table.Text());
  } else {
    context.output.Print(json);
  }
  return AllAnswered(looks);
}

}  // namespace pando::ctl
