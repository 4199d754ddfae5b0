// pandoctl tree: the nodes, indented by their depth.

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/numbers.h"
#include "tools/pandoctl/style.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

using Names = absl::flat_hash_map<uint64_t, std::string>;

Names NamesOf(const v1::ListNamespacesResponse& listed) {
  Names names;
  for (const v1::NamespaceInfo& ns : listed.namespaces()) {
    names[ns.number()] = absl::StrCat(
        ns.has_extra_key() ? " extra_key " + NameText(ns.extra_key()) : "",
        ns.has_cache_salt() ? " salted" : "", ns.bigram() ? " bigram" : "");
  }
  return names;
}

std::string NodeText(const v1::TreeNode& node) {
  std::string text = absl::StrFormat(
      "%s%d..%d  %s, %s", std::string(2 * (size_t{node.depth()} + 1), ' '),
      node.begin_token(), node.begin_token() + node.tokens(),
      Counted(node.pages(), "page"), Counted(node.hits(), "hit"));
  if (node.locks() > 0) {
    absl::StrAppend(&text, ", ", Counted(node.locks(), "lock"));
  }
  if (node.priority() != 0) {
    absl::StrAppend(&text, ", priority ", node.priority());
  }
  return absl::StrCat(text, ", age ", node.age_accesses(), "\n");
}

std::string TreeText(const v1::DumpTreeResponse& dump, const Names& names) {
  if (dump.nodes().empty()) return "nothing is cached\n";
  std::string text;
  uint64_t current = 0;
  for (const v1::TreeNode& node : dump.nodes()) {
    if (node.namespace_number() != current) {
      current = node.namespace_number();
      const auto name = names.find(current);
      const std::string heading = absl::StrCat(
          "namespace ", current, name == names.end() ? "" : name->second);
      absl::StrAppend(&text, Styled(Style::kHeading, heading), "\n");
    }
    absl::StrAppend(&text, NodeText(node));
  }
  if (dump.omitted() > 0) {
    absl::StrAppend(&text, "and ", Counted(dump.omitted(), "more node"), "\n");
  }
  return text;
}

}  // namespace

absl::Status Tree(const Context& context) {
  v1::DumpTreeRequest request;
  if (context.options.namespace_number.has_value()) {
    RETURN_IF_ERROR(
        CheckNamespace(context.server, *context.options.namespace_number));
  }
  request.set_limit(context.options.limit);
  request.set_namespace_number(context.options.namespace_number.value_or(0));
  ASSIGN_OR_RETURN(const auto dump, context.server.Ask(request));
  if (!context.output.is_table()) {
    context.output.Print(dump);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(
      const auto namespaces,
      context.server.List<v1::ListNamespacesRequest>(context.options.limit));
  context.output.Print(TreeText(dump, NamesOf(namespaces)));
  return absl::OkStatus();
}

}  // namespace pando::ctl
