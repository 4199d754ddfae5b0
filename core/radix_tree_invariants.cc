// RadixTree::AppendViolations: the invariants in radix_tree.h, checked one by
// one against what the structure itself shows.

#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "core/radix_tree.h"

namespace pando {
namespace {

uint32_t LocksOfChildren(const Node& node) {
  uint32_t locks = 0;
  for (const Node* c = node.first_child; c != nullptr; c = c->next_sibling) {
    locks += c->lock_count;
  }
  return locks;
}

struct Sums {
  uint32_t evictable = 0;
  uint32_t locked = 0;
  uint32_t nodes = 0;

  void Add(const Node& node) {
    (node.is_locked() ? locked : evictable) += node.page_count;
    ++nodes;
  }
  friend bool operator==(const Sums&, const Sums&) = default;
};

std::string Describe(const Sums& sums) {
  return absl::StrCat(sums.nodes, " nodes, ", sums.evictable, " evictable and ",
                      sums.locked, " protected pages");
}

}  // namespace

void RadixTree::AppendViolations(
    absl::FunctionRef<uint32_t(const Node&)> locks_taken_on,
    std::vector<std::string>& violations) const {
  const auto expect = [&](bool holds, const Node& node, const char* what) {
    if (holds) return;
    violations.push_back(absl::StrCat("tree: node ", node.id, ": ", what));
  };
  const auto expect_sums = [&](const Sums& seen, const Sums& counted,
                               const std::string& of) {
    if (seen == counted) return;
    violations.push_back(absl::StrCat("tree: ", of, " has ", Describe(seen),
                                      ", but ", Describe(counted),
                                      " are counted"));
  };
  Sums all;
  uint32_t roots = 0;
  std::unordered_map<const Namespace*, Sums> of_namespace;
  std::vector<std::vector<const Node*>> unlocked(classes_.size());
  std::unordered_map<const Segment*, uint32_t> used;
  nodes_.ForEach([&](const Node& node) {
    expect(node.lock_count == locks_taken_on(node) + LocksOfChildren(node),
           node, "lock_count is not its own locks plus its children's");
    for (const Node* c = node.first_child; c != nullptr; c = c->next_sibling) {
      expect(c->parent == &node, *c, "is listed below another parent");
    }
    if (node.is_root()) {
      ++roots;
      expect(!node.is_leaf() || node.is_locked(), node,
             "is the root of a namespace with nothing in it");
      expect(FindNamespace(*node.ns->key) == node.ns &&
                 FindNamespace(node.ns->number) == node.ns &&
                 node.ns->root == &node,
             node, "is not the root of its namespace");
      return;
    }
    all.Add(node);
    of_namespace[node.ns].Add(node);
    used[&*node.segment] += node.page_count;
    expect(node.page_count > 0, node, "has no pages");
    expect(node.is_within_segment(), node, "reaches past its segment");
    expect(node.ns == node.parent->ns, node,
           "is in another namespace than its parent");
    expect(node.depth_pages == node.parent->end_pages(), node,
           "does not begin where its parent ends");
    // Also shows that siblings differ in their first page: the index holds one
    // node for each key.
    expect(node.is_within_segment() &&
               index_.Find(*node.parent, node.tokens(page_tokens_)) == &node,
           node, "is not found by its first page");
    if (!node.is_locked()) unlocked[node.ns->quota_class].push_back(&node);
  });
  expect_sums(all, {evictable_pages_, protected_pages_, node_count()},
              "the tree");
  if (roots != namespaces_.size() || roots != namespaces_by_number_.size()) {
    violations.push_back(absl::StrCat("tree: ", roots, " roots, but ",
                                      namespaces_.size(), " namespaces"));
  }
  std::vector<Sums> of_class(classes_.size());
  for (const auto& [key, ns] : namespaces_) {
    const Sums& sums = of_namespace[ns.get()];
    expect_sums(sums, {ns->evictable_pages, ns->protected_pages, ns->nodes},
                "a namespace");
    of_class[ns->quota_class].evictable += sums.evictable;
    of_class[ns->quota_class].locked += sums.locked;
  }
  for (size_t c = 0; c < classes_.size(); ++c) {
    const uint32_t locked =
        classes_[c].cached_pages - classes_[c].evictable_pages;
    expect_sums(of_class[c], {classes_[c].evictable_pages, locked, 0},
                "a class of namespaces");
    classes_[c].order->AppendViolations(unlocked[c], violations);
  }
  for (const auto& [segment, pages] : used) {
    if (pages == segment->used_pages()) continue;
    violations.push_back(absl::StrCat("tree: the nodes of a segment hold ",
                                      pages, " pages, but ",
                                      segment->used_pages(), " are counted"));
  }
}

}  // namespace pando
