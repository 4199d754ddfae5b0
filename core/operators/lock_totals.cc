#include "core/operators/lock_totals.h"

#include <algorithm>

#include "core/nodes/step_sizes.h"

namespace pando {

bool LockTotals::Step(const CacheParts& parts) {
  uint32_t left = kStepCells;
  if (!has_all_locks_) has_all_locks_ = AddLocks(parts.sessions, left);
  // A node ends before its descendants do, so their totals have been added when
  // its turn comes.
  for (; left > 0 && !deepest_.empty(); --left) {
    std::pop_heap(deepest_.begin(), deepest_.end());
    const Handle handle = deepest_.back().second;
    deepest_.pop_back();
    const Node* const node = parts.tree.FindNode(handle);
    if (node == nullptr || node->parent->is_root()) continue;
    Add(*node->parent, totals_.at(handle));
  }
  return has_all_locks_ && deepest_.empty();
}

uint32_t LockTotals::Of(const Node& node) const {
  const auto it = totals_.find(Slab<Node>::HandleOf(node));
  return it == totals_.end() ? 0 : it->second;
}

void LockTotals::Add(const Node& node, uint32_t locks) {
  const Handle handle = Slab<Node>::HandleOf(node);
  const auto [it, is_new] = totals_.try_emplace(handle);
  it->second += locks;
  if (!is_new) return;
  deepest_.emplace_back(node.end_pages(), handle);
  std::push_heap(deepest_.begin(), deepest_.end());
}

bool LockTotals::AddLocks(const SessionTable& sessions, uint32_t& left) {
  const uint32_t cells = sessions.lock_cells();
  for (; left > 0 && next_ < cells; --left) {
    const LockRecord* const lock = sessions.LockAt(next_++);
    if (lock == nullptr || lock->node->is_root()) continue;
    if (ns_.has_value() && lock->node->ns->number != *ns_) continue;
    Add(*lock->node, 1);
  }
  return next_ == cells;
}

}  // namespace pando
