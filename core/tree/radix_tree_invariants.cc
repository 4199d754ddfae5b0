// RadixTree::AppendViolations: what radix_tree.h says of a node, checked
// against what the structure itself shows. Each check looks at the node and its
// neighbours only; InvariantCheck compares the sums.

#include "absl/strings/str_cat.h"
#include "core/tree/radix_tree.h"

namespace pando {

void RadixTree::AppendViolations(const Node& node, int64_t lock_count,
                                 std::vector<std::string>& violations) const {
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    violations.push_back(absl::StrCat("tree: node ", node.id, ": ", what));
  };
  expect(node.lock_count == lock_count,
         "lock_count is not its own locks plus its locked children");
  if (node.is_root()) {
    expect(!node.is_leaf() || node.is_locked(),
           "is the root of a namespace with nothing in it");
    expect(FindNamespace(*node.ns->key) == node.ns &&
               FindNamespace(node.ns->number) == node.ns &&
               node.ns->root == &node,
           "is not the root of its namespace");
    return;
  }
  expect(node.page_count > 0, "has no pages");
  expect(node.ns == node.parent->ns, "is in another namespace than its parent");
  expect(node.depth_pages == node.parent->end_pages(),
         "does not begin where its parent ends");
  expect(!node.is_locked() || unlinking_.has_value() ||
             (node.older == nullptr && node.newer == nullptr),
         "is locked, but in the order of eviction");
  AppendLinkViolations(node, violations);
  if (learner_ != nullptr && learner_->Knows(node)) {
    learner_->history().AppendViolations(node, violations);
  }
  if (!node.is_locked()) {
    order(node.ns->quota_class).AppendViolations(node, violations);
  }
  expect(classes_[node.ns->quota_class].ended.Contains(node) ==
             node.is_ended_leaf(),
         "is not listed among the ended leaves as it should be");
  expect(node.is_within_segment(), "reaches past its segment");
  if (!node.is_within_segment()) return;
  // This also shows that siblings differ in their first page: the index holds
  // one node for each key.
  expect(index_.FindIntact(*node.parent, node.tokens(page_tokens_)) == &node,
         "is not found by its first page");
  const bool is_top =
      node.parent->is_root() || &*node.parent->segment != &*node.segment;
  if (!is_top) return;
  const auto [pages, locked] = PagesOfSegment(node);
  expect(ledger_ == nullptr || locked == node.segment->facts().locked_pages,
         "the locked pages of its segment are not counted right");
  if (pages == node.segment->used_pages()) return;
  violations.push_back(absl::StrCat("tree: the nodes of a segment hold ", pages,
                                    " pages, but ", node.segment->used_pages(),
                                    " are counted"));
}

// If each node is between its neighbours, each is listed exactly once below its
// parent.
void RadixTree::AppendLinkViolations(
    const Node& node, std::vector<std::string>& violations) const {
  const Node* const previous = node.previous_sibling;
  const Node* const next = node.next_sibling;
  const bool is_listed =
      previous == nullptr
          ? node.parent->first_child == &node
          : previous->next_sibling == &node && previous->parent == node.parent;
  const bool is_continued =
      next == nullptr ||
      (next->previous_sibling == &node && next->parent == node.parent);
  if (is_listed && is_continued) return;
  violations.push_back(
      absl::StrCat("tree: node ", node.id, ": is listed below another parent"));
}

// The slices of a segment lie one after the other on one path.
std::pair<uint32_t, uint32_t> RadixTree::PagesOfSegment(
    const Node& node) const {
  uint32_t pages = node.page_count;
  uint32_t locked = node.is_locked() ? node.page_count : 0;
  for (const Node* n = &node;
       n->first_page + n->page_count < n->segment->page_count();) {
    const Node* const child = index_.FindIntact(
        *n, n->tokens(page_tokens_) + size_t{n->page_count} * page_tokens_);
    if (child == nullptr || &*child->segment != &*node.segment ||
        !child->is_within_segment() || child->page_count == 0) {
      break;
    }
    pages += child->page_count;
    if (child->is_locked()) locked += child->page_count;
    n = child;
  }
  return {pages, locked};
}

}  // namespace pando
