// pandoctl health, version: is it well, and which one is it.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {

absl::Status Health(const Context& context) {
  ASSIGN_OR_RETURN(const std::string status,
                   context.server.Health(context.options.service));
  std::vector<std::string> violations;
  if (context.options.invariants) {
    ASSIGN_OR_RETURN(const auto checked,
                     context.server.Ask(v1::CheckInvariantsRequest()));
    violations.assign(checked.violations().begin(), checked.violations().end());
  }
  if (context.output.is_table()) {
    context.output.Print(HealthText(status) + "\n");
    for (const std::string& violation : violations) {
      context.output.Print(violation + "\n");
    }
  } else {
    context.output.Print(Json{{"status", status}, {"violations", violations}});
  }
  if (status != "SERVING") {
    return absl::FailedPreconditionError(
        absl::StrCat(context.server.address(), " says ", status));
  }
  if (violations.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(Counted(violations.size(), "invariant"), " violated"));
}

absl::Status Version(const Context& context) {
  const auto stats = context.server.Ask(v1::GetStatsRequest());
  if (context.output.is_table()) {
    context.output.Print(
        NamedValues({{"pandoctl", PANDO_VERSION},
                     {"pandod", stats.ok() ? stats->version() : "unknown"}}));
  } else {
    context.output.Print(
        Json{{"pandoctl", PANDO_VERSION},
             {"pandod", stats.ok() ? Json(stats->version()) : Json()}});
  }
  return stats.status();
}

}  // namespace pando::ctl
