#ifndef PANDO_CORE_EVICTION_ENDED_LEAVES_H_
#define PANDO_CORE_EVICTION_ENDED_LEAVES_H_

#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "core/nodes/node.h"

namespace pando {

// The ended leaves of one quota class (Node::is_ended_leaf), from the least to
// the most recently used. They are evicted before all other leaves, although
// they are in the order of the policy, too. Owned by RadixTree; not
// thread-safe.
class EndedLeaves {
 public:
  // Add a leaf that has become an ended one, and remove it before it stops
  // being one. In between, its last_access must not change.
  void Add(Node& leaf) { leaves_.emplace(KeyOf(leaf), &leaf); }
  void Remove(const Node& leaf) { leaves_.erase(KeyOf(leaf)); }

  // The leaf that is evicted first; null if there is none.
  Node* First() const {
    return leaves_.empty() ? nullptr : leaves_.begin()->second;
  }
  bool Contains(const Node& node) const {
    const auto it = leaves_.find(KeyOf(node));
    return it != leaves_.end() && it->second == &node;
  }
  size_t size() const { return leaves_.size(); }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // last_access, id
  static Key KeyOf(const Node& leaf) { return {leaf.last_access, leaf.id}; }

  absl::btree_map<Key, Node*> leaves_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_ENDED_LEAVES_H_
