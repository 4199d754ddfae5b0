// pandoctl evict, flush, policy: what operators change.

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/pandoctl/confirm.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/numbers.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {

absl::Status Evict(const Context& context) {
  const uint32_t pages = context.options.evicted_pages;
  const absl::Status agreed = Confirm(
      context, absl::StrCat("Evict up to ", Counted(pages, "page"), "?"));
  if (!agreed.ok()) return agreed;
  v1::EvictRequest request;
  request.set_pages(pages);
  const auto answer = context.server.Ask(request);
  if (!answer.ok()) return answer.status();
  if (context.output.is_table()) {
    context.output.Print(absl::StrCat(
        "evicted ", Counted(answer->evicted_pages(), "page"), "\n"));
  } else {
    context.output.Print(*answer);
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
  const absl::Status agreed = Confirm(
      context, absl::StrCat("Evict all of ", what, " that is not locked?"));
  if (!agreed.ok()) return agreed;
  const auto answer = context.server.Ask(request);
  if (!answer.ok()) return answer.status();
  if (context.output.is_table()) {
    context.output.Print(
        absl::StrCat("evicted ", Counted(answer->evicted_pages(), "page"), "; ",
                     answer->protected_pages(), " locked, which stay\n"));
  } else {
    context.output.Print(*answer);
  }
  return absl::OkStatus();
}

absl::Status Policy(const Context& context) {
  const std::string& wanted = context.options.policy;
  Json answer;
  if (wanted.empty()) {
    const auto stats = context.server.Ask(v1::GetStatsRequest());
    if (!stats.ok()) return stats.status();
    answer["policy"] = stats->eviction_policy();
  } else {
    v1::SetEvictionPolicyRequest request;
    request.set_policy(wanted);
    const auto changed = context.server.Ask(request);
    if (!changed.ok()) return changed.status();
    answer["policy"] = wanted;
    answer["previous"] = changed->previous();
  }
  if (!context.output.is_table()) {
    context.output.Print(answer);
  } else if (wanted.empty()) {
    context.output.Print(answer["policy"].get<std::string>() + "\n");
  } else {
    context.output.Print(absl::StrCat(
        wanted, ", was ", answer["previous"].get<std::string>(), "\n"));
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
