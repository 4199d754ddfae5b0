// pandoctl status: one look at everything.

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/tables.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

std::string PoolText(const v1::PoolDescription& pool) {
  if (pool.is_absent()) return "none";
  if (pool.is_open()) return "open, waits for the first engine";
  uint64_t bytes = 0;
  for (const v1::Shard& shard : pool.shards()) bytes += shard.size_bytes();
  return absl::StrFormat(
      "%s of %s, %s in %s", Counted(pool.capacity_pages(), "page"),
      Counted(pool.layout().page_tokens(), "token"), BytesText(bytes),
      Counted(static_cast<uint64_t>(pool.shards_size()), "shard"));
}

// "LAYOUT_ORDER_PAGE_FIRST" is page_first in options.
std::string OptionText(const std::string& name, const std::string& prefix) {
  const absl::string_view text = absl::StripPrefix(name, prefix);
  return absl::AsciiStrToLower(text);
}

std::string LayoutText(const v1::PoolDescription& pool) {
  if (pool.is_absent() || pool.is_open()) return "-";
  const v1::KvLayout& layout = pool.layout();
  const std::string dtype =
      OptionText(v1::DType_Name(layout.dtype()), "DTYPE_");
  std::string text = absl::StrCat(Counted(layout.layers(), "layer"), " of ");
  if (layout.dtype() == v1::DTYPE_OPAQUE) {
    absl::StrAppend(&text, BytesText(layout.piece_bytes()), " a page");
  } else {
    absl::StrAppendFormat(
        &text, "%s of %s of %d %s", Counted(layout.kv_planes(), "plane"),
        Counted(layout.heads(), "head"), layout.head_size(), dtype);
  }
  absl::StrAppend(
      &text, ", ",
      OptionText(v1::LayoutOrder_Name(layout.order()), "LAYOUT_ORDER_"));
  if (!layout.page_format().empty()) {
    absl::StrAppend(&text, ", format ", NameText(layout.page_format()));
  }
  return text;
}

std::string HitRateText(const v1::CacheCounters& counters) {
  if (counters.query_tokens() == 0) return "-";
  return absl::StrFormat(
      "%s %% of %d tokens",
      PercentText(counters.hit_tokens(), counters.query_tokens()),
      counters.query_tokens());
}

std::vector<std::pair<std::string, std::string>> BlockLines(
    const v1::BlockFigures& blocks) {
  return {
      {"memory", absl::StrFormat("%s of %s, %s", BytesText(blocks.used_bytes()),
                                 BytesText(blocks.memory_bytes()),
                                 Counted(blocks.kinds(), "kind"))},
      {"blocks", absl::StrFormat(
                     "%d evictable, %d protected, %d reserved, %d quarantined",
                     blocks.evictable_blocks(), blocks.protected_blocks(),
                     blocks.reserved_blocks(), blocks.quarantined_blocks())},
      {"block hits",
       absl::StrFormat(
           "%s %% of %d keys",
           PercentText(blocks.hits(), blocks.hits() + blocks.misses()),
           blocks.hits() + blocks.misses())},
      {"recoveries", absl::StrFormat("%d", blocks.recoveries())},
      {"block locks",
       absl::StrFormat("%s, %s", Counted(blocks.locks(), "lock"),
                       Counted(blocks.reservations(), "reservation"))}};
}

std::string StatusText(const std::string& address, const std::string& health,
                       const v1::GetStatsResponse& stats,
                       const v1::PoolDescription& pool) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"address", address},
      {"health", HealthText(health)},
      {"version", stats.version()},
      {"console", stats.console_url().empty() ? "-" : stats.console_url()},
      {"epoch", absl::StrFormat("%016x", stats.epoch())},
      {"model", pool.model().empty() ? "-" : NameText(pool.model())},
      {"pool", PoolText(pool)},
      {"layout", LayoutText(pool)},
      {"pages", PagesText(stats.pages())},
      {"recovery",
       absl::StrCat("pages, ", Counted(stats.page_recoveries(), "time"))},
      {"hit rate", HitRateText(stats.counters())},
      {"policy", stats.eviction_policy()},
      {"sessions", absl::StrCat(stats.sessions())},
      {"locks", absl::StrCat(stats.locks())},
      {"waiting", absl::StrCat(stats.waiting_matches())},
      {"index", absl::StrCat(Counted(stats.nodes(), "node"), " in ",
                             Counted(stats.namespaces(), "namespace"))},
  };
  if (stats.has_blocks())
    absl::c_move(BlockLines(stats.blocks()), std::back_inserter(lines));
  std::string text = NamedValues(lines);
  if (!stats.quota_classes().empty()) {
    absl::StrAppend(&text, "\n", QuotaTable(stats.quota_classes()));
  }
  if (!stats.blocks().quotas().empty()) {
    absl::StrAppend(&text, "\n", BlockQuotaTable(stats.blocks().quotas()));
  }
  return text;
}

}  // namespace

absl::Status Status(const Context& context) {
  ASSIGN_OR_RETURN(const v1::GetStatsResponse stats,
                   context.server.Ask(v1::GetStatsRequest()));
  ASSIGN_OR_RETURN(const v1::DescribePoolResponse pool,
                   context.server.Ask(v1::DescribePoolRequest()));
  ASSIGN_OR_RETURN(const std::string health, context.server.Health(""));
  const std::string& address = context.server.address();
  if (context.output.is_table()) {
    context.output.Print(StatusText(address, health, stats, pool.pool()));
  } else {
    context.output.Print(Json{{"address", address},
                              {"health", health},
                              {"stats", ToJson(stats)},
                              {"pool", ToJson(pool.pool())}});
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
