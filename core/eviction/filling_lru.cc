#include "core/eviction/filling_lru.h"

#include <iterator>

namespace pando {

void FillingLru::AddFront(Node& front, Node& back) {
  if (IsListed(back)) {
    LruPolicy::AddFront(front, back);
  } else {
    AddEarlier(front);
  }
}

void FillingLru::AddEarlier(Node& node) {
  if (IsListed(node)) return;
  waiting_.insert(
      {node.last_access, node.end_pages(), Slab<Node>::HandleOf(node)});
}

bool FillingLru::Fill(uint32_t nodes) {
  for (; nodes > 0 && !waiting_.empty(); --nodes) {
    const auto newest = std::prev(waiting_.end());
    Node* const node = nodes_->Find(newest->node);
    if (node != nullptr && !node->is_locked() && !IsListed(*node)) {
      AddOldest(*node);
    }
    waiting_.erase(newest);
  }
  return waiting_.empty();
}

bool FillingLru::Shrink(uint32_t nodes) {
  const auto end = waiting_.size() <= nodes
                       ? waiting_.end()
                       : std::next(waiting_.begin(), nodes);
  waiting_.erase(waiting_.begin(), end);
  return waiting_.empty();
}

}  // namespace pando
