#include "core/eviction/lru_policy.h"

#include "absl/strings/str_cat.h"
#include "core/eviction/eviction_rank.h"

namespace pando {

void LruPolicy::AfterUse(Node& node) {
  // Above a locked node everything is locked.
  for (Node* n = &node; !n->is_root() && !n->is_locked(); n = n->parent) {
    Unlink(*n);
    LinkAfter(*n, *end_.older);
  }
}

EvictionRank LruPolicy::RankOf(const Node& victim) const {
  return EvictionRankOf(EvictionPolicyKind::kLru, victim);
}

void LruPolicy::LinkAfter(Node& node, Node& other) {
  node.older = &other;
  node.newer = other.newer;
  node.newer->older = &node;
  other.newer = &node;
}

void LruPolicy::Unlink(Node& node) {
  if (!IsListed(node)) return;
  node.older->newer = node.newer;
  node.newer->older = node.older;
  node.older = node.newer = nullptr;
}

// If each node is between its neighbours and in order with them, the whole ring
// is right.
void LruPolicy::AppendViolations(const Node& node,
                                 std::vector<std::string>& violations) const {
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    violations.push_back(absl::StrCat("lru: node ", node.id, " is ", what));
  };
  const bool is_linked = node.older != nullptr && node.newer != nullptr &&
                         node.older->newer == &node &&
                         node.newer->older == &node;
  expect(is_linked, "missing in the order");
  if (!is_linked || node.older == &end_) return;
  const Node& older = *node.older;
  expect(older.last_access <= node.last_access, "too far back in the order");
  expect(older.last_access < node.last_access ||
             older.depth_pages > node.depth_pages,
         "newer than its parent");
}

}  // namespace pando
