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

// The state of one machine.
struct Overview {
  std::string health;
  v1::GetStatsResponse stats;
  v1::PoolDescription pool;
};

absl::StatusOr<Overview> FetchOverview(Server& server) {
  Overview overview;
  ASSIGN_OR_RETURN(overview.stats, server.Ask(v1::GetStatsRequest()));
  ASSIGN_OR_RETURN(const v1::DescribePoolResponse pool,
                   server.Ask(v1::DescribePoolRequest()));
  overview.pool = pool.pool();
  ASSIGN_OR_RETURN(overview.health, server.Health(""));
  return overview;
}

std::vector<std::string> RowOf(const Machine& machine,
                               const absl::StatusOr<Overview>& overview) {
  if (!overview.ok()) {
    return {machine.name, "does not answer", "", "", "", "", "", "", ""};
  }
  const v1::PageStates& pages = overview->stats.pages();
  const v1::CacheCounters& counters = overview->stats.counters();
  return {
      machine.name,
      overview->health,
      overview->stats.version(),
      overview->pool.model().empty() ? "-" : NameText(overview->pool.model()),
      PercentText(counters.hit_tokens(), counters.query_tokens()),
      absl::StrCat(pages.free()),
      absl::StrCat(pages.evictable()),
      absl::StrCat(pages.protected_()),
      absl::StrCat(overview->stats.sessions())};
}

Json JsonOf(const Machine& machine, const absl::StatusOr<Overview>& overview) {
  Json json = {{"address", machine.name}};
  if (!overview.ok()) {
    json["error"] = std::string(overview.status().message());
    return json;
  }
  json["health"] = overview->health;
  json["stats"] = ToJson(overview->stats);
  json["pool"] = ToJson(overview->pool);
  return json;
}

}  // namespace

absl::Status Fleet(const Context& context) {
  ASSIGN_OR_RETURN(const std::vector<Machine> machines,
                   FindMachines(context.options));
  const std::vector<absl::StatusOr<Overview>> overviews =
      AskAll(machines, FetchOverview);
  Table table({"MACHINE", "HEALTH", "VERSION", "MODEL", "HIT%", "FREE",
               "EVICTABLE", "PROTECTED", "SESSIONS"});
  Json json = Json::array();
  for (size_t i = 0; i < machines.size(); ++i) {
    table.Add(RowOf(machines[i], overviews[i]));
    json.push_back(JsonOf(machines[i], overviews[i]));
  }
  if (context.output.is_table()) {
    context.output.Print(table.Text());
  } else {
    context.output.Print(json);
  }
  return AllAnswered(overviews);
}

}  // namespace pando::ctl
