#include "core/eviction/ranked_policy.h"

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
    const Node& node, std::vector<std::string>& violations) const {
  if (!node.is_leaf()) return;
  const auto it = leaves_.find(EvictionRankOf(kind_, node));
  if (it != leaves_.end() && it->second == &node) return;
  violations.push_back(absl::StrCat(std::string(EvictionPolicyName(kind_)),
                                    ": node ", node.id,
                                    " is missing in the order"));
}

}  // namespace pando
