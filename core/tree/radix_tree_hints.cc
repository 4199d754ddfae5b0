// Hints of inserts about the next use: RadixTree::EndPrefix and Retain.

#include "core/tree/radix_tree.h"

namespace pando {
namespace {

// At most this many retained leaves are spared in a row; the next victim goes
// even if it is retained. So an eviction passes over at most three leaves, and
// leaves that are not retained stay for at least a quarter as many evictions as
// they would without retention.
constexpr uint32_t kSparedInARow = 3;
// At most this many leaves are spared by one call, which bounds its cost.
constexpr uint32_t kSparedByCall = 64;

}  // namespace

void RadixTree::EndPrefix(Node& end) {
  const Node* below = nullptr;
  for (Node* n = &end; !n->is_root(); n = n->parent) {
    const bool is_shared = n->first_child != below ||
                           (below != nullptr && below->next_sibling != nullptr);
    if (is_shared) return;
    const AuditedChange change(*this, *n);
    n->has_ended = true;
    n->retained_seconds = 0;
    if (n->is_ended_leaf()) EndedOf(*n).Add(*n);
    below = n;
  }
}

void RadixTree::Retain(Node& end, uint16_t seconds) {
  const uint32_t passed = time_ - end.retained_from;
  if (end.IsRetained(time_) &&
      passed + seconds * 10u <= end.retained_seconds * 10u) {
    return;
  }
  end.retained_from = time_;
  end.retained_seconds = seconds;
}

void RadixTree::ForgetEnd(Node& node) {
  if (node.is_ended_leaf()) EndedOf(node).Remove(node);
  const AuditedChange change(*this, node);
  node.has_ended = false;
}

// Chooses the next victim from the same class, so that other classes do not pay
// for the retention.
Node& RadixTree::SpareRetained(Node& first, uint32_t& spared_by_call) {
  ClassState& of_class = classes_[first.ns->quota_class];
  Node* victim = &first;
  for (uint32_t spared = 0;
       spared < kSparedInARow && spared_by_call < kSparedByCall &&
       victim->IsRetained(time_);
       ++spared) {
    ++spared_by_call;
    Touch(*victim);
    Node* const next = of_class.order.now().Victim();
    if (next == victim) break;  // a use changes nothing in this order
    ++of_class.spared_leaves;
    victim = next;
  }
  return *victim;
}

}  // namespace pando
