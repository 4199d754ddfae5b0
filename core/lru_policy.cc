#include "core/lru_policy.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace pando {

void LruPolicy::AfterUse(Node& node) {
  // Above a locked node everything is locked.
  for (Node* n = &node; !n->is_root() && !n->is_locked(); n = n->parent) {
    Unlink(*n);
    LinkAfter(*n, *end_.older);
  }
}

void LruPolicy::LinkAfter(Node& node, Node& other) {
  node.older = &other;
  node.newer = other.newer;
  node.newer->older = &node;
  other.newer = &node;
}

void LruPolicy::Unlink(Node& node) {
  node.older->newer = node.newer;
  node.newer->older = node.older;
  node.older = node.newer = nullptr;
}

void LruPolicy::AppendViolations(const std::vector<const Node*>& nodes,
                                 std::vector<std::string>& violations) const {
  absl::flat_hash_set<const Node*> older;
  uint64_t last_access = 0;
  for (const Node* n = end_.newer; n != &end_; n = n->newer) {
    for (const Node* c = n->first_child; c != nullptr; c = c->next_sibling) {
      if (older.contains(c)) continue;
      violations.push_back(
          absl::StrCat("lru: node ", c->id, " is newer than its parent"));
    }
    if (n->last_access < last_access) {
      violations.push_back(
          absl::StrCat("lru: node ", n->id, " is too far back in the order"));
    }
    last_access = n->last_access;
    older.insert(n);
  }
  for (const Node* node : nodes) {
    if (older.contains(node)) continue;
    violations.push_back(
        absl::StrCat("lru: node ", node->id, " is missing in the order"));
  }
  if (older.size() != nodes.size()) {
    violations.push_back(absl::StrCat("lru: ", older.size(),
                                      " nodes in the order of ", nodes.size()));
  }
}

}  // namespace pando
