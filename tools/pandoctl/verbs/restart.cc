// pandoctl restart: ends pandod, and waits until its keeper has started the
// next one.

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "tools/pandoctl/confirm.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

constexpr absl::Duration kAskPeriod = absl::Milliseconds(20);
constexpr absl::Duration kPatience = absl::Seconds(60);

uint64_t ReadyBlocks(const v1::GetStatsResponse& stats) {
  return stats.blocks().evictable_blocks() + stats.blocks().protected_blocks();
}

// Waits until a pandod of another run answers, and returns its figures.
absl::StatusOr<v1::GetStatsResponse> Next(Server& server, uint64_t epoch) {
  const absl::Time end = absl::Now() + kPatience;
  while (true) {
    absl::StatusOr<v1::GetStatsResponse> stats =
        server.Ask(v1::GetStatsRequest());
    if (stats.ok() && stats->epoch() != epoch) return stats;
    if (absl::Now() > end) {
      return absl::UnavailableError(absl::StrFormat(
          "%s for %s; its log, and its keeper's, say why",
          stats.ok() ? "the pandod of before still serves"
                     : "pandod ended, and no other one has served",
          absl::FormatDuration(kPatience)));
    }
    absl::SleepFor(kAskPeriod);
  }
}

}  // namespace

absl::Status Restart(const Context& context) {
  RETURN_IF_ERROR(
      Confirm(context,
              "End pandod at once? Blocks stay, and the cache of a host pool "
              "without movers. Workers lose their sessions where there are "
              "blocks, or where the pool loses its cache."));
  ASSIGN_OR_RETURN(const auto before,
                   context.server.Ask(v1::GetStatsRequest()));
  const absl::Time begin = absl::Now();
  const absl::Status asked = context.server.Ask(v1::RestartRequest()).status();
  // pandod may have ended before its answer went out.
  if (!asked.ok() && !absl::IsUnavailable(asked)) return asked;
  ASSIGN_OR_RETURN(const auto after, Next(context.server, before.epoch()));
  const absl::Duration pause = absl::Now() - begin;
  if (context.output.is_table()) {
    context.output.Print(absl::StrFormat(
        "restarted in %.2f s: version %s, before %s; blocks %d, before %d\n",
        absl::ToDoubleSeconds(pause), after.version(), before.version(),
        ReadyBlocks(after), ReadyBlocks(before)));
  } else {
    context.output.Print(Json{{"seconds", absl::ToDoubleSeconds(pause)},
                              {"version", after.version()},
                              {"version_before", before.version()},
                              {"blocks", ReadyBlocks(after)},
                              {"blocks_before", ReadyBlocks(before)}});
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
