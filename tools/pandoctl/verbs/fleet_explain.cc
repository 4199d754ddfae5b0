// pandoctl fleet explain: which machines hold a prompt.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/fleet.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/tokens.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

using Answer = absl::StatusOr<v1::ExplainMatchResponse>;

// -1 stands for a machine that does not answer.
int64_t MatchedTokens(const Answer& answer) {
  return answer.ok() ? int64_t{answer->matched_tokens()} : -1;
}

// Numbers of the answers, the longest match first.
std::vector<size_t> InOrder(const std::vector<Answer>& answers) {
  std::vector<size_t> order(answers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return MatchedTokens(answers[i]); });
  return order;
}

std::vector<std::string> RowOf(const Machine& machine, const Answer& answer) {
  if (!answer.ok()) return {machine.name, "", "does not answer"};
  const std::string end = v1::MatchEnd_Name(answer->end());
  return {machine.name, absl::StrCat(answer->matched_tokens()),
          std::string(absl::StripPrefix(end, "MATCH_END_"))};
}

Json JsonOf(const Machine& machine, const Answer& answer) {
  Json json = {{"address", machine.name}};
  if (answer.ok()) {
    json["match"] = ToJson(*answer);
  } else {
    json["error"] = std::string(answer.status().message());
  }
  return json;
}

}  // namespace

absl::Status FleetExplain(const Context& context) {
  v1::ExplainMatchRequest request;
  ASSIGN_OR_RETURN(const std::vector<uint32_t> tokens,
                   PromptOf(context.options));
  ASSIGN_OR_RETURN(*request.mutable_namespace_(), NamespaceOf(context.options));
  request.mutable_tokens()->Add(tokens.begin(), tokens.end());
  ASSIGN_OR_RETURN(const std::vector<Machine> machines,
                   FindMachines(context.options));
  const std::vector<Answer> answers =
      AskAll(machines, [&](Server& server) { return server.Ask(request); });
  Table table({"MACHINE", "MATCHED", "END"});
  Json json = Json::array();
  for (const size_t i : InOrder(answers)) {
    table.Add(RowOf(machines[i], answers[i]));
    json.push_back(JsonOf(machines[i], answers[i]));
  }
  if (context.output.is_table()) {
    context.output.Print(absl::StrCat("of ", Counted(tokens.size(), "token"),
                                      "\n", table.Text()));
  } else {
    context.output.Print(json);
  }
  return AllAnswered(answers);
}

}  // namespace pando::ctl
