// pandoctl match, explain: how far a prompt matches, and why no further.

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/table.h"
#include "tools/pandoctl/tables.h"
#include "tools/pandoctl/tokens.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// Fills the prompt of any request that has one; returns its length.
template <typename Request>
absl::StatusOr<size_t> FillPrompt(const Options& options, Request& request) {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> tokens, PromptOf(options));
  ASSIGN_OR_RETURN(v1::Namespace ns, NamespaceOf(options));
  request.mutable_tokens()->Add(tokens.begin(), tokens.end());
  *request.mutable_namespace_() = std::move(ns);
  return tokens.size();
}

std::string MatchedText(uint32_t matched, size_t asked) {
  return absl::StrCat(matched, " of ", Counted(asked, "token"));
}

std::string EndText(const v1::ExplainMatchResponse& answer) {
  switch (answer.end()) {
    case v1::MATCH_END_COMPLETE:
      return "all of it is cached";
    case v1::MATCH_END_PAGE_FLOOR:
      return "what is left is less than a page";
    case v1::MATCH_END_DIVERGED:
      return absl::StrCat("the cache continues with other tokens after ",
                          answer.diverged_at());
    case v1::MATCH_END_EVICTED:
      return absl::StrFormat("the next page was evicted %s ago, for: %s",
                             AgeText(answer.evicted_ms_ago()),
                             ReasonText(answer.evicted_for()));
    case v1::MATCH_END_NEVER_CACHED:
      return "the next page is not known";
    default:
      return "unknown";
  }
}

std::string NotLoadedText(v1::NotLoaded reason) {
  switch (reason) {
    case v1::NOT_LOADED_NOT_ASKED:
      return ", not loaded: no call has asked for it";
    case v1::NOT_LOADED_TOO_FEW:
      return ", not loaded: that is less than --tier-min-load-tokens";
    case v1::NOT_LOADED_NO_ROOM:
      return ", not loaded: loads may take no more room now";
    case v1::NOT_LOADED_NO_MOVER:
      return ", not loaded: a pando-mover is missing";
    default:
      return "";
  }
}

const char* PlaceText(v1::Tier tier) {
  return tier == v1::TIER_HOST ? " in host memory" : " on disk";
}

std::string TierText(const v1::ExplainMatchResponse& answer) {
  if (answer.loadable_tokens() == 0) return "no more of it";
  return absl::StrCat(Counted(answer.loadable_tokens(), "token"), " more",
                      PlaceText(answer.loadable_tier()),
                      NotLoadedText(answer.not_loaded()));
}

std::string ExplanationText(const v1::ExplainMatchResponse& answer,
                            size_t asked) {
  const std::string end = v1::MatchEnd_Name(answer.end());
  std::string text = NamedValues(
      {{"matched", MatchedText(answer.matched_tokens(), asked)},
       {"end", absl::StrCat(absl::StripPrefix(end, "MATCH_END_"), ": ",
                            EndText(answer))},
       {"pending",
        answer.is_pending() ? "another call computes the next page" : "no"},
       {"kept", TierText(answer)},
       {"more in",
        answer.longer_in_namespaces().empty()
            ? "no other namespace"
            : absl::StrCat(
                  "namespaces ",
                  absl::StrJoin(answer.longer_in_namespaces(), ", "))}});
  if (!answer.locks().empty()) {
    absl::StrAppend(&text, "\n", LockTable(answer.locks()));
  }
  return text;
}

}  // namespace

absl::Status Match(const Context& context) {
  v1::MatchPrefixRequest request;
  ASSIGN_OR_RETURN(const size_t asked, FillPrompt(context.options, request));
  request.set_touch(false);  // nobody uses it
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(
        NamedValues({{"matched", MatchedText(answer.matched_tokens(), asked)},
                     {"pages", absl::StrCat(answer.page_ids_size())}}));
  } else {
    context.output.Print(answer);
  }
  return absl::OkStatus();
}

absl::Status Explain(const Context& context) {
  v1::ExplainMatchRequest request;
  ASSIGN_OR_RETURN(const size_t asked, FillPrompt(context.options, request));
  ASSIGN_OR_RETURN(const auto answer, context.server.Ask(request));
  if (context.output.is_table()) {
    context.output.Print(ExplanationText(answer, asked));
  } else {
    context.output.Print(answer);
  }
  return absl::OkStatus();
}

}  // namespace pando::ctl
