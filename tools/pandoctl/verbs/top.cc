// pandoctl top: a screen that is drawn anew after each interval.

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
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

constexpr int kListed = 8;
// Among so many sessions those that hold most are looked for.
constexpr uint32_t kAskedSessions = 10'000;
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
                 const Rates& rates, uint32_t workers) {
  return absl::StrFormat(
      "pandod %s at %s: %s, %s, %s, policy %s\n"
      "hit rate %s %%, %.1f matches/s, %.1f inserts/s, %.1f evicted pages/s, "
      "%.1f refusals/s\n"
      "%s  # protected + reserved ! quarantined = evictable . free\n%s\n",
      stats.version(), address, Counted(workers, "session"),
      Counted(stats.locks(), "lock"), Counted(stats.namespaces(), "namespace"),
      stats.eviction_policy(),
      PercentText(rates.hit_tokens, rates.query_tokens), rates.matches,
      rates.inserts, rates.evicted_pages, rates.refusals, Bar(stats.pages()),
      PagesText(stats.pages()));
}

std::string BlockLine(const v1::BlockFigures& blocks) {
  return absl::StrFormat(
      "blocks: %s free of %s, %s, hits %s %%, %d locked, %d written\n",
      BytesText(blocks.memory_bytes() - blocks.used_bytes()),
      BytesText(blocks.memory_bytes()), Counted(blocks.kinds(), "kind"),
      PercentText(blocks.hits(), blocks.hits() + blocks.misses()),
      blocks.protected_blocks(), blocks.reserved_blocks());
}

std::string TierLine(const v1::TierFigures& tier) {
  const std::string held =
      tier.has_held_pages()
          ? absl::StrFormat("%d of %d pages, ", tier.held_pages(),
                            tier.capacity_pages())
          : "";
  return absl::StrFormat(
      "tier %s: %s%d stored, %d loaded, %d dropped, %d failed%s%s\n",
      TierName(tier.tier()), held, tier.stored_pages(), tier.loaded_pages(),
      tier.dropped_pages(), tier.failures(),
      tier.refuses_stores() ? ", stores fail" : "",
      tier.refuses_loads() ? ", loads fail" : "");
}

// A line each for the block memory, every tier and the movers; no line for what
// is not there.
std::string BlocksAndTiers(const v1::GetStatsResponse& stats) {
  std::string lines;
  if (stats.has_blocks()) lines += BlockLine(stats.blocks());
  for (const v1::TierFigures& tier : stats.tiers()) lines += TierLine(tier);
  if (!stats.movers().empty()) {
    absl::StrAppend(
        &lines, "movers: ",
        absl::StrJoin(stats.movers(), ", ",
                      [](std::string* out, const v1::MoverFigures& mover) {
                        absl::StrAppend(
                            out, mover.device(), " ",
                            mover.is_present() ? "copies" : "is missing");
                      }),
        "\n");
  }
  return lines;
}

// The largest namespaces, the sessions that hold most and the oldest locks.
struct Holders {
  v1::ListNamespacesResponse namespaces;
  v1::ListSessionsResponse sessions;
  v1::ListLocksResponse locks;
};

uint64_t Held(const v1::SessionInfo& session) {
  return uint64_t{session.locks()} + session.reserved_pages() +
         session.locked_blocks() + session.reserved_blocks();
}

// The sessions of workers: those that hold most first, and of those that hold
// as much, those whose calls have taken most steps.
absl::StatusOr<v1::ListSessionsResponse> FindWorkers(Server& server) {
  ASSIGN_OR_RETURN(auto found,
                   server.List<v1::ListSessionsRequest>(kAskedSessions));
  auto& sessions = *found.mutable_sessions();
  const auto of_pandod = std::ranges::stable_partition(
      sessions, std::logical_not(), &v1::SessionInfo::is_internal);
  found.set_total(found.total() - static_cast<uint32_t>(of_pandod.size()));
  sessions.erase(of_pandod.begin(), of_pandod.end());
  std::ranges::stable_sort(sessions, std::ranges::greater(),
                           [](const v1::SessionInfo& session) {
                             return std::pair(Held(session), session.steps());
                           });
  return found;
}

// At most `listed` of each. Of `workers` those whose names contain `text`.
absl::StatusOr<Holders> FindHolders(Server& server,
                                    v1::ListSessionsResponse workers,
                                    const std::string& text, int listed) {
  auto& sessions = *workers.mutable_sessions();
  const auto others = std::ranges::stable_partition(
      sessions, [&](const v1::SessionInfo& session) {
        return absl::StrContains(session.client_name(), text);
      });
  sessions.erase(others.begin(), others.end());
  if (!text.empty()) {
    workers.set_total(static_cast<uint32_t>(sessions.size()));
  }
  if (sessions.size() > listed)
    sessions.DeleteSubrange(listed, sessions.size() - listed);
  v1::ListLocksRequest oldest;
  oldest.set_limit(static_cast<uint32_t>(listed));
  ASSIGN_OR_RETURN(auto namespaces, server.List<v1::ListNamespacesRequest>(
                                        static_cast<uint32_t>(listed)));
  ASSIGN_OR_RETURN(auto locks, server.Ask(oldest));
  return Holders{std::move(namespaces), std::move(workers), std::move(locks)};
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

winsize Terminal() {
  winsize size = {};
  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  return size;
}

// How many rows each of the three tables has, so that all begin on a screen
// below `head`: each has a header and a blank line, too.
int RowsBelow(const std::string& head) {
  const int rows = Terminal().ws_row;
  if (rows == 0) return kListed;
  const auto used = static_cast<int>(absl::c_count(head, '\n')) + 3 * 2;
  return std::clamp((rows - used) / 3, 1, kListed);
}

// Returns the part of the screen that fits on the terminal.
std::string Fit(const std::string& screen) {
  const winsize size = Terminal();
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
        ASSIGN_OR_RETURN(auto workers, FindWorkers(context.server));
        const std::string head = absl::StrCat(
            Head(context.server.address(), stats, rates, workers.total()),
            BlocksAndTiers(stats));
        ASSIGN_OR_RETURN(const Holders holders,
                         FindHolders(context.server, std::move(workers),
                                     options.sessions_like,
                                     is_live ? RowsBelow(head) : kListed));
        if (!context.output.is_table()) {
          context.output.Print(AsJson(stats, rates, holders));
          return absl::OkStatus();
        }
        const std::string screen = absl::StrCat(head, "\n", TablesOf(holders));
        context.output.Print(is_live ? kHomeAndClear + Fit(screen) : screen);
        return absl::OkStatus();
      });
}

}  // namespace pando::ctl
