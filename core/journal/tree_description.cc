#include "core/journal/tree_description.h"

#include <algorithm>

#include "core/nodes/step_sizes.h"

namespace pando {

bool TreeDescription::TellNext(const RadixTree& tree, uint32_t nodes,
                               EventLog& log) {
  const uint32_t all = tree.node_cells();
  const uint32_t end = next_ + std::min(all - next_, kStepCells);
  for (uint32_t told = 0; next_ < end && told < nodes; ++next_) {
    const Node* node = tree.NodeAt(next_);
    if (node != nullptr) told += Tell(*node, log);
  }
  return next_ == all;
}

// A node is told as a whole, so the nodes that it is split into later have been
// told, too. It is enough to look at the first page of a node.
uint32_t TreeDescription::Tell(const Node& node, EventLog& log) {
  path_.clear();
  for (const Node* n = &node;
       !n->is_root() && !is_told_[n->pages().front().value()]; n = n->parent) {
    path_.push_back(n);
  }
  const auto told = static_cast<uint32_t>(path_.size());
  for (; !path_.empty(); path_.pop_back()) {
    const Node& next = *path_.back();
    LogNode(next, log);
    for (PageId page : next.pages()) is_told_[page.value()] = true;
  }
  return told;
}

void TreeDescription::Forget(std::span<const PageId> pages) {
  for (PageId page : pages) is_told_[page.value()] = false;
}

void LogNode(const Node& node, EventLog& log) {
  const Node& parent = *node.parent;
  log.Stored(node.segment, node.first_page, node.page_count,
             parent.is_root() ? kPaddingPage : parent.pages().back(),
             node.ns->key);
}

}  // namespace pando
