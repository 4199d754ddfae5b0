// RadixTree::AppendViolations: the invariants in radix_tree.h, checked one by
// one against what the structure itself shows.

#include <unordered_map>
#include <unordered_set>

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

}  // namespace

void RadixTree::AppendViolations(
    const std::function<uint32_t(const Node&)>& locks_taken_on,
    std::vector<std::string>& violations) {
  const auto expect = [&](bool holds, const Node& node, const char* what) {
    if (holds) return;
    violations.push_back(
        absl::StrCat("tree: node ", Slab<Node>::HandleOf(node), ": ", what));
  };
  uint32_t evictable = 0;
  uint32_t protected_sum = 0;
  uint32_t unlocked_nodes = 0;
  uint32_t nodes = 0;
  uint32_t roots = 0;
  std::unordered_map<const Segment*, uint32_t> used;
  nodes_.ForEach([&](const Node& node) {
    if (!node.is_root()) used[&*node.segment] += node.page_count;
    expect(node.lock_count == locks_taken_on(node) + LocksOfChildren(node),
           node, "lock_count is not its own locks plus its children's");
    for (const Node* c = node.first_child; c != nullptr; c = c->next_sibling) {
      expect(c->parent == &node, *c, "is listed below another parent");
    }
    if (node.is_root()) {
      ++roots;
      expect(!node.is_leaf() || node.is_locked(), node,
             "is the root of a namespace with nothing in it");
      expect(FindRoot(node.root_of->key) == &node, node,
             "is not the root of its namespace");
      return;
    }
    ++nodes;
    expect(node.page_count > 0, node, "has no pages");
    expect(node.first_page + node.page_count <= node.segment->page_count(),
           node, "reaches past its segment");
    // Also shows that siblings differ in their first page: the index holds one
    // node for each key.
    expect(index_.Find(*node.parent, node.tokens(page_tokens_)) == &node, node,
           "is not found by its first page");
    expect((node.older != nullptr) == !node.is_locked(), node,
           "is in the eviction order although locked, or missing there");
    if (node.is_locked()) {
      protected_sum += node.page_count;
    } else {
      evictable += node.page_count;
      ++unlocked_nodes;
    }
  });
  if (nodes != index_.size() || roots != namespaces_.size()) {
    violations.push_back(absl::StrCat(
        "tree: ", nodes, " nodes and ", roots, " roots, but ", index_.size(),
        " indexed and ", namespaces_.size(), " namespaces"));
  }
  if (evictable != evictable_pages_ || protected_sum != protected_pages_) {
    violations.push_back(absl::StrCat("tree: ", evictable, " evictable and ",
                                      protected_sum, " protected pages, but ",
                                      evictable_pages_, " and ",
                                      protected_pages_, " counted"));
  }
  for (const auto& [segment, pages] : used) {
    if (pages == segment->used_pages()) continue;
    violations.push_back(absl::StrCat("tree: the nodes of a segment hold ",
                                      pages, " pages, but ",
                                      segment->used_pages(), " are counted"));
  }
  uint32_t ordered = 0;
  std::unordered_set<const Node*> older;
  for (Node* n = order_.Oldest(); n != nullptr; n = order_.NewerThan(*n)) {
    ++ordered;
    for (const Node* c = n->first_child; c != nullptr; c = c->next_sibling) {
      expect(older.contains(c), *c, "is newer than its parent");
    }
    older.insert(n);
  }
  if (ordered != unlocked_nodes) {
    violations.push_back(absl::StrCat("tree: ", ordered,
                                      " nodes in order, but ", unlocked_nodes,
                                      " unlocked"));
  }
}

}  // namespace pando
