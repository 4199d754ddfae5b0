// pandoctl evict, flush, policy: what operators change.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/pandoctl/confirm.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/numbers.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// The policy in use and, where reuse is learnt, what it hits beside LRU.
std::string PolicyText(const v1::GetStatsResponse& stats) {
  if (!stats.has_reuse() || stats.reuse().requested_pages() == 0) {
    return stats.eviction_policy() + "\n";
  }
  const v1::ReuseStats& reuse = stats.reuse();
  const uint64_t asked = reuse.requested_pages();
  return NamedValues(
      {{"policy", stats.eviction_policy()},
       {"hit rate", absl::StrCat(PercentText(reuse.hit_pages(), asked),
                                 " % of ", Counted(asked, "page"))},
       {"lru's", absl::StrCat(PercentText(reuse.lru_hit_pages(), asked),
                              " %, of the same size")}});
}

absl::Status ShowPolicy(const Context& context) {
  ASSIGN_OR_RETURN(const v1::GetStatsResponse stats,
                   context.server.Ask(v1::GetStatsRequest()));
  if (context.output.is_table()) {
    context.output.Print(PolicyText(stats));
    return absl::OkStatus();
  }
  Json answer = {{"policy", stats.eviction_policy()}};
  if (stats.has_reuse()) answer["reuse"] = ToJson(stats.reuse());
  context.output.Print(answer);
  return absl::OkStatus();
}

}  // namespace

absl::Status Evict(const Context& context) {
  const uint32_t pages = context.options.evicted_pages;
  RETURN_IF_ERROR(Confirm(
      context, absl::StrCat("Evict up to ", Counted(pages, "page"), "?")));
  v1::EvictRequest request;
  request.set_pages(pages);
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(absl::StrCat(
        "evicted ", Counted(answer.evicted_pages(), "page"), "\n"));
  } else {
    context.output.Print(answer);
  }
  return absl::OkStatus();
}

absl::Status Flush(const Context& context) {
  v1::FlushRequest request;
  std::string what = "everything";
  if (context.options.namespace_number.has_value()) {
    RETURN_IF_ERROR(
        CheckNamespace(context.server, *context.options.namespace_number));
    request.set_namespace_number(*context.options.namespace_number);
    what = absl::StrCat("namespace ", *context.options.namespace_number);
  }
  RETURN_IF_ERROR(Confirm(
      context, absl::StrCat("Evict all of ", what, " that is not locked?")));
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(
        absl::StrCat("evicted ", Counted(answer.evicted_pages(), "page"), "; ",
                     answer.protected_pages(), " locked, which stay\n"));
  } else {
    context.output.Print(answer);
  }
  return absl::OkStatus();
}

absl::Status Policy(const Context& context) {
  const std::string& wanted = context.options.policy;
  if (wanted.empty()) return ShowPolicy(context);
  v1::SetEvictionPolicyRequest request;
  request.set_policy(wanted);
  ASSIGN_OR_RETURN(const v1::SetEvictionPolicyResponse changed,
                   context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(
        absl::StrCat(wanted, ", was ", changed.previous(), "\n"));
  } else {
    context.output.Print(
        Json{{"policy", wanted}, {"previous", changed.previous()}});
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
