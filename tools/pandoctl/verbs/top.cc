// pandoctl top: a screen that is drawn anew after each interval.

#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/rates.h"
#include "tools/pandoctl/style.h"
#include "tools/pandoctl/tables.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

constexpr uint32_t kListed = 8;
constexpr uint32_t kBarWidth = 64;
constexpr const char* kHomeAndClear = "\x1b[H\x1b[J";

// A character for each part of the pool: what is locked or being written
// first, what is free last.
std::string Bar(const v1::PageStates& pages) {
  const std::pair<uint32_t, char> parts[] = {{pages.protected_(), '#'},
                                             {pages.reserved(), '+'},
                                             {pages.quarantined(), '!'},
                                             {pages.evictable(), '='}};
  std::string bar;
  uint64_t sum = 0;
  for (const auto& [count, letter] : parts) {
    sum += count;
    bar.resize(sum * kBarWidth / pages.capacity(), letter);
  }
  bar.resize(kBarWidth, '.');
  return absl::StrCat("[", bar, "]");
}

std::string Head(const std::string& address, const v1::GetStatsResponse& stats,
                 const Rates& rates) {
  return absl::StrFormat(
      "pandod %s at %s: %s, %s, %s, policy %s\n"
      "hit rate %s %%, %.1f matches/s, %.1f inserts/s, %.1f evicted pages/s, "
      "%.1f refusals/s\n"
      "%s  # protected + reserved ! quarantined = evictable . free\n%s\n",
      stats.version(), address, Counted(stats.sessions(), "session"),
      Counted(stats.locks(), "lock"), Counted(stats.namespaces(), "namespace"),
      stats.eviction_policy(),
      PercentText(rates.hit_tokens, rates.query_tokens), rates.matches,
      rates.inserts, rates.evicted_pages, rates.refusals, Bar(stats.pages()),
      PagesText(stats.pages()));
}

// The largest namespaces, the oldest sessions and the oldest locks.
struct Holders {
  v1::ListNamespacesResponse namespaces;
  v1::ListSessionsResponse sessions;
  v1::ListLocksResponse locks;
};

absl::StatusOr<Holders> FindHolders(Server& server) {
  v1::ListLocksRequest oldest;
  oldest.set_limit(kListed);
  ASSIGN_OR_RETURN(auto namespaces,
                   server.List<v1::ListNamespacesRequest>(kListed));
  ASSIGN_OR_RETURN(auto sessions,
                   server.List<v1::ListSessionsRequest>(kListed));
  ASSIGN_OR_RETURN(auto locks, server.Ask(oldest));
  return Holders{std::move(namespaces), std::move(sessions), std::move(locks)};
}

std::string TablesOf(const Holders& holders) {
  return absl::StrCat(NamespaceTable(holders.namespaces.namespaces()), "\n",
                      SessionTable(holders.sessions.sessions()), "\n",
                      LockTable(holders.locks.locks()));
}

Json AsJson(const v1::GetStatsResponse& stats, const Rates& rates,
            const Holders& holders) {
  return {{"stats", ToJson(stats)},
          {"rates", ToJson(rates)},
          {"namespaces", ToJson(holders.namespaces)},
          {"sessions", ToJson(holders.sessions)},
          {"locks", ToJson(holders.locks)}};
}

// Returns the part of the screen that fits on the terminal.
std::string Fit(const std::string& screen) {
  winsize size = {};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  std::vector<std::string> lines = absl::StrSplit(screen, '\n');
  if (size.ws_row > 0 && lines.size() > size.ws_row) lines.resize(size.ws_row);
  for (std::string& line : lines) {
    if (size.ws_col > 0) line = CutLine(line, size.ws_col);
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

absl::Status Top(const Context& context) {
  const bool is_live = context.output.is_table() && isatty(STDOUT_FILENO);
  Options options = context.options;
  if (!is_live) options.count = 1;
  return Repeat(
      context.server, options,
      [&](const v1::GetStatsResponse& stats, const Rates& rates) {
        ASSIGN_OR_RETURN(const Holders holders, FindHolders(context.server));
        if (!context.output.is_table()) {
          context.output.Print(AsJson(stats, rates, holders));
          return absl::OkStatus();
        }
        const std::string screen =
            absl::StrCat(Head(context.server.address(), stats, rates), "\n",
                         TablesOf(holders));
        context.output.Print(is_live ? kHomeAndClear + Fit(screen) : screen);
        return absl::OkStatus();
      });
}

}  // namespace pando::ctl
