#ifndef PANDO_CORE_LRU_ORDER_H_
#define PANDO_CORE_LRU_ORDER_H_

#include "core/node.h"

namespace pando {

// All unlocked nodes from the least to the most recently used. Owned by
// RadixTree; not thread-safe; links live in the nodes, every step is O(1).
//
// Invariant: a node is newer than its descendants, since an access to a node is
// an access to all its ancestors and these are added after it. Unlocked nodes
// have no locked descendants, so the oldest node is always an unlocked leaf:
// the next victim, with no search.
class LruOrder {
 public:
  LruOrder() { Clear(); }
  LruOrder(const LruOrder&) = delete;
  LruOrder& operator=(const LruOrder&) = delete;

  // The next victim; null when everything is locked.
  Node* Oldest() const { return end_.newer == &end_ ? nullptr : end_.newer; }
  // The next newer node; null after the newest.
  Node* NewerThan(const Node& node) const {
    return node.newer == &end_ ? nullptr : node.newer;
  }

  // REQUIRES for the Add methods: `node` is not in the order.
  void AddNewest(Node& node) { LinkAfter(node, *end_.older); }
  // Right after `other`, which is in the order.
  void AddAfter(Node& node, Node& other) { LinkAfter(node, other); }

  // REQUIRES: `node` is in the order.
  void Remove(Node& node) {
    node.older->newer = node.newer;
    node.newer->older = node.older;
    node.older = node.newer = nullptr;
  }
  void MoveToNewest(Node& node) {
    Remove(node);
    AddNewest(node);
  }

 private:
  void Clear() { end_.older = end_.newer = &end_; }
  void LinkAfter(Node& node, Node& other) {
    node.older = &other;
    node.newer = other.newer;
    node.newer->older = &node;
    other.newer = &node;
  }

  Node end_;  // closes the ring: its newer is the oldest, its older the newest
};

}  // namespace pando

#endif  // PANDO_CORE_LRU_ORDER_H_
