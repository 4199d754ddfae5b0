#include "core/eviction/ranked_policy.h"

#include <iterator>

#include "absl/strings/str_cat.h"

namespace pando {

void RankedPolicy::LeafChanged(Node& node) {
  if (node.is_leaf()) {
    Add(node);
  } else {
    Forget(node);
  }
}

bool RankedPolicy::Shrink(uint32_t nodes) {
  const auto end = leaves_.size() <= nodes ? leaves_.end()
                                           : std::next(leaves_.begin(), nodes);
  leaves_.erase(leaves_.begin(), end);
  return leaves_.empty();
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
