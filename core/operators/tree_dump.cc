#include "core/operators/tree_dump.h"

#include <algorithm>

namespace pando {

bool TreeDumpWork::Step(CacheParts& parts) {
  if (!has_locks_) {
    has_locks_ = locks_.Step(parts);
    if (!has_locks_) return false;
  }
  const RadixTree& tree = parts.tree;
  const uint32_t end = std::min(limit_, listed_ + kStepEntries);
  while (listed_ < end) {
    if (places_.empty()) {
      if (BeginNextNamespace(tree)) continue;
      Finish(tree);
      return true;
    }
    const Place place = places_.back();
    places_.pop_back();
    List(tree, place);
  }
  if (listed_ < limit_) return false;
  Finish(tree);
  return true;
}

// Returns false when there is no further namespace.
bool TreeDumpWork::BeginNextNamespace(const RadixTree& tree) {
  const Namespace* ns = nullptr;
  if (!ns_.has_value()) {
    ns = tree.NamespaceAfter(last_);
  } else if (last_ != *ns_) {
    ns = tree.FindNamespace(*ns_);
  }
  if (ns == nullptr) return false;
  last_ = ns->number;
  PushChildren(*ns->root, 0);
  return true;
}

// Lists a node. If it is gone, lists nothing, because its descendants are gone,
// too. If splits have put nodes between it and its listed ancestor, lists those
// first.
void TreeDumpWork::List(const RadixTree& tree, const Place& place) {
  const Node* const node = tree.FindNode(place.node);
  if (node == nullptr) return;
  std::vector<const Node*> path = {node};
  while (!path.back()->parent->is_root() &&
         Slab<Node>::HandleOf(*path.back()->parent) != place.above) {
    path.push_back(path.back()->parent);
  }
  uint32_t depth = place.depth;
  for (; !path.empty(); path.pop_back(), ++depth) {
    if (listed_ == limit_) return;
    const Node& next = *path.back();
    ++listed_;
    nodes_.push_back({.node = next.id,
                      .parent = next.parent->is_root() ? 0 : next.parent->id,
                      .ns = next.ns->number,
                      .depth = depth,
                      .begin_token = next.depth_pages * tree.page_tokens(),
                      .tokens = next.page_count * tree.page_tokens(),
                      .pages = next.page_count,
                      .locks = locks_.Of(next),
                      .hits = next.hit_count,
                      .priority = next.priority,
                      .age_accesses = tree.now() - next.last_access});
  }
  PushChildren(*node, depth);
}

// Pushes the children so that the first one is listed next, but no more of them
// than the limit still allows.
void TreeDumpWork::PushChildren(const Node& node, uint32_t depth) {
  const auto first = static_cast<ptrdiff_t>(places_.size());
  const uint32_t most = limit_ - listed_;
  uint32_t pushed = 0;
  for (const Node* child = node.first_child; child != nullptr && pushed < most;
       child = child->next_sibling, ++pushed) {
    places_.push_back(
        {Slab<Node>::HandleOf(*child), Slab<Node>::HandleOf(node), depth});
  }
  std::reverse(places_.begin() + first, places_.end());
}

void TreeDumpWork::Finish(const RadixTree& tree) {
  uint32_t there = tree.node_count();
  if (ns_.has_value()) {
    const Namespace* ns = tree.FindNamespace(*ns_);
    there = ns == nullptr ? 0 : ns->nodes;
  }
  omitted_ = there - std::min(there, listed_);
}

}  // namespace pando
