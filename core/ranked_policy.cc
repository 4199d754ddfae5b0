#include "core/ranked_policy.h"

#include "absl/strings/str_cat.h"

namespace pando {

void RankedPolicy::LeafChanged(Node& node) {
  if (node.is_leaf()) {
    Add(node);
  } else {
    leaves_.erase(EvictionRankOf(kind_, node));
  }
}

void RankedPolicy::AppendViolations(
    const std::vector<const Node*>& nodes,
    std::vector<std::string>& violations) const {
  const std::string name(EvictionPolicyName(kind_));
  size_t expected = 0;
  for (const Node* node : nodes) {
    if (!node->is_leaf()) continue;
    ++expected;
    const auto it = leaves_.find(EvictionRankOf(kind_, *node));
    if (it != leaves_.end() && it->second == node) continue;
    violations.push_back(
        absl::StrCat(name, ": node ", node->id, " is missing in the order"));
  }
  if (expected != leaves_.size()) {
    violations.push_back(absl::StrCat(name, ": ", leaves_.size(),
                                      " leaves in the order of ", expected));
  }
}

}  // namespace pando
