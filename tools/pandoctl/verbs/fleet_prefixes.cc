// pandoctl fleet prefixes: what several machines hold, and what that takes.

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/fleet.h"
#include "tools/pandoctl/shared_prefixes.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// All that one machine holds.
struct Holdings {
  std::vector<v1::BlocksStored> stored;  // without their tokens
  uint64_t page_bytes = 0;
};

absl::StatusOr<Holdings> HoldingsOf(Server& server, absl::Duration limit) {
  Holdings holdings;
  ASSIGN_OR_RETURN(const v1::DescribePoolResponse pool,
                   server.Ask(v1::DescribePoolRequest()));
  for (const v1::Shard& shard : pool.pool().shards()) {
    holdings.page_bytes += shard.size_bytes() / pool.pool().capacity_pages();
  }
  RETURN_IF_ERROR(server.WatchEvents(
      [&](const v1::Event& event) {
        if (event.has_stored()) {
          holdings.stored.push_back(event.stored());
          holdings.stored.back().clear_tokens();
        }
        return !event.has_snapshot_end();
      },
      limit));
  return holdings;
}

std::string NamesOf(const std::vector<size_t>& numbers,
                    const std::vector<Machine>& machines) {
  return absl::StrJoin(numbers, " ", [&](std::string* out, size_t number) {
    out->append(machines[number].name);
  });
}

std::string TotalsText(const FleetPages::Totals& totals) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (size_t i = 1; i < totals.pages_by_holders.size(); ++i) {
    lines.emplace_back(absl::StrCat("on ", Counted(i, "machine")),
                       Counted(totals.pages_by_holders[i], "different page"));
  }
  lines.emplace_back("duplicated", BytesText(totals.duplicated_bytes));
  return NamedValues(lines);
}

std::string TableText(const std::vector<SharedPrefix>& prefixes, size_t limit,
                      const std::vector<Machine>& machines) {
  Table table({"TOKENS", "DUPLICATED", "UP TO", "EXTRA KEY", "MACHINES"});
  for (size_t i = 0; i < std::min(limit, prefixes.size()); ++i) {
    const SharedPrefix& prefix = prefixes[i];
    table.Add({absl::StrCat(prefix.tokens), BytesText(prefix.duplicated_bytes),
               absl::BytesToHexString(prefix.hash.substr(0, 6)),
               prefix.extra_key ? NameText(*prefix.extra_key) : "-",
               NamesOf(prefix.machines, machines)});
  }
  return table.Text();
}

Json JsonOf(const FleetPages::Totals& totals,
            const std::vector<SharedPrefix>& prefixes, size_t limit,
            const std::vector<Machine>& machines) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(limit, prefixes.size()); ++i) {
    const SharedPrefix& prefix = prefixes[i];
    Json names = Json::array();
    for (const size_t number : prefix.machines) {
      names.push_back(machines[number].name);
    }
    list.push_back({{"tokens", prefix.tokens},
                    {"duplicated_bytes", prefix.duplicated_bytes},
                    {"hash", absl::BytesToHexString(prefix.hash)},
                    {"machines", std::move(names)}});
    if (prefix.extra_key) list.back()["extra_key"] = *prefix.extra_key;
  }
  return {{"pages_by_holders", totals.pages_by_holders},
          {"duplicated_bytes", totals.duplicated_bytes},
          {"prefixes", std::move(list)}};
}

}  // namespace

absl::Status FleetPrefixes(const Context& context) {
  const Options& options = context.options;
  ASSIGN_OR_RETURN(const std::vector<Machine> machines, FindMachines(options));
  const std::vector<absl::StatusOr<Holdings>> holdings =
      AskAll(machines, [&](Server& server) {
        return HoldingsOf(server, absl::Seconds(options.timeout_s));
      });
  FleetPages pages;
  for (size_t i = 0; i < holdings.size(); ++i) {
    if (!holdings[i].ok()) continue;
    for (const v1::BlocksStored& stored : holdings[i]->stored) {
      pages.Add(i, stored, holdings[i]->page_bytes);
    }
  }
  const FleetPages::Totals totals = pages.totals();
  const std::vector<SharedPrefix> prefixes = pages.SharedPrefixes();
  if (context.output.is_table()) {
    std::string text = TotalsText(totals);
    if (!prefixes.empty()) {
      absl::StrAppend(&text, "\n",
                      TableText(prefixes, options.limit, machines));
    }
    context.output.Print(text);
  } else {
    context.output.Print(JsonOf(totals, prefixes, options.limit, machines));
  }
  return AllAnswered(holdings);
}

}  // namespace pando::ctl
