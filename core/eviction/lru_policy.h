#ifndef PANDO_CORE_EVICTION_LRU_POLICY_H_
#define PANDO_CORE_EVICTION_LRU_POLICY_H_

#include <string>
#include <vector>

#include "core/eviction/eviction_policy.h"

namespace pando {

// Keeps all unlocked nodes in a ring from the least to the most recently used.
// The links are in the nodes; every change is O(1) for each node.
//
// Invariant: a node is newer than its descendants, because an access to a node
// is also an access to all its ancestors, which are added after it. Unlocked
// nodes have no locked descendants, so the oldest node is always an unlocked
// leaf: the next victim, with no search. Of nodes that were used by the same
// access, which are on one path, the deeper one is older.
class LruPolicy : public EvictionPolicy {
 public:
  LruPolicy() { end_.older = end_.newer = &end_; }
  LruPolicy(const LruPolicy&) = delete;
  LruPolicy& operator=(const LruPolicy&) = delete;

  void Add(Node& node) override { LinkAfter(node, *end_.older); }
  void Remove(Node& node) override { Unlink(node); }
  void AddFront(Node& front, Node& back) override { LinkAfter(front, back); }
  void LeafChanged(Node&) override {}
  void BeforeUse(Node&) override {}
  void AfterUse(Node& node) override;
  Node* Victim() override { return end_.newer == &end_ ? nullptr : end_.newer; }
  EvictionRank RankOf(const Node& victim) const override;
  void AppendViolations(const Node& node,
                        std::vector<std::string>& violations) const override;
  std::optional<size_t> leaf_count() const override { return std::nullopt; }

 protected:
  static bool IsListed(const Node& node) { return node.older != nullptr; }
  void AddOldest(Node& node) { LinkAfter(node, end_); }

 private:
  static void LinkAfter(Node& node, Node& other);
  // Does nothing if the node is not listed yet; see FillingLru.
  static void Unlink(Node& node);

  Node end_;  // closes the ring: its newer is the oldest, its older the newest
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_LRU_POLICY_H_
