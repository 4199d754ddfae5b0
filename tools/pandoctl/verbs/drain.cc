// pandoctl drain: nothing new is admitted; waits for what runs, if asked.

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "tools/pandoctl/confirm.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

constexpr absl::Duration kPollPeriod = absl::Milliseconds(100);

// Shows, on a terminal, one line that is written over.
void ShowProgress(const v1::GetStatsResponse& stats) {
  if (!isatty(STDERR_FILENO)) return;
  absl::FPrintF(stderr, "\r\x1b[K%d locks, %d reserved pages left",
                stats.locks(), stats.pages().reserved());
}

void EndProgress() {
  if (isatty(STDERR_FILENO)) absl::FPrintF(stderr, "\r\x1b[K");
}

// Waits until nothing is locked or reserved; with `exit`, until pandod has
// ended.
absl::Status Wait(Server& server, bool exit) {
  while (true) {
    const auto stats = server.Ask(v1::GetStatsRequest());
    if (exit && absl::IsUnavailable(stats.status())) return absl::OkStatus();
    if (!stats.ok()) return stats.status();
    const bool is_idle = stats->locks() == 0 && stats->pages().reserved() == 0;
    if (is_idle && !exit) return absl::OkStatus();
    ShowProgress(*stats);
    absl::SleepFor(kPollPeriod);
  }
}

}  // namespace

absl::Status Drain(const Context& context) {
  const bool exit = context.options.exit;
  RETURN_IF_ERROR(Confirm(
      context, exit ? "Admit nothing new, and end pandod when it is idle?"
                    : "Admit nothing new until pandod is started again?"));
  v1::DrainRequest request;
  request.set_exit(exit);
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  std::string state = "draining";
  if (context.options.wait) {
    const absl::Status waited = Wait(context.server, exit);
    EndProgress();
    if (!waited.ok()) return waited;
    state = exit ? "ended" : "idle";
  }
  if (context.output.is_table()) {
    context.output.Print(state + "\n");
  } else {
    context.output.Print(Json{{"state", state}});
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
