#ifndef PANDO_CORE_EVICTION_RANKED_POLICY_H_
#define PANDO_CORE_EVICTION_RANKED_POLICY_H_

#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "core/eviction/eviction_policy.h"
#include "core/eviction/eviction_rank.h"

namespace pando {

// The unlocked leaves, sorted by rank: every change is O(log leaves). It
// implements all policies except lru and reuse. With lru's ranks it also serves
// during a change between lru and reuse, and inside ReusePolicy. Removing a
// node that it does not have, and adding one again, do nothing.
class RankedPolicy : public EvictionPolicy {
 public:
  explicit RankedPolicy(EvictionPolicyKind kind) : kind_(kind) {}

  void Add(Node& node) override {
    if (node.is_leaf()) leaves_.emplace(EvictionRankOf(kind_, node), &node);
  }
  void Remove(Node& node) override {
    if (node.is_leaf()) Forget(node);
  }
  // The same for a node that may not be a leaf any more.
  void Forget(const Node& node) { leaves_.erase(EvictionRankOf(kind_, node)); }
  void AddFront(Node&, Node&) override {}  // the front is no leaf
  void LeafChanged(Node& node) override;
  // The only leaf of a path is at its end.
  void BeforeUse(Node& node) override {
    if (!node.is_locked()) Remove(node);
  }
  void AfterUse(Node& node) override {
    if (!node.is_locked()) Add(node);
  }
  bool Shrink(uint32_t nodes) override;
  Node* Victim() override {
    return leaves_.empty() ? nullptr : leaves_.begin()->second;
  }
  // The leaf that is evicted last; null if there is none.
  Node* Last() { return leaves_.empty() ? nullptr : leaves_.rbegin()->second; }
  EvictionRank RankOf(const Node& victim) const override {
    return EvictionRankOf(kind_, victim);
  }
  void AppendViolations(const Node& node,
                        std::vector<std::string>& violations) const override;
  std::optional<size_t> leaf_count() const override { return leaves_.size(); }

 private:
  const EvictionPolicyKind kind_;
  absl::btree_map<EvictionRank, Node*> leaves_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_RANKED_POLICY_H_
