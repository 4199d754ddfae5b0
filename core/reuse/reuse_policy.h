#ifndef PANDO_CORE_REUSE_REUSE_POLICY_H_
#define PANDO_CORE_REUSE_REUSE_POLICY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/eviction/eviction_policy.h"
#include "core/eviction/ranked_policy.h"
#include "core/reuse/class_tournament.h"
#include "core/reuse/reuse_class.h"
#include "core/reuse/reuse_learner.h"

namespace pando {

// The unlocked leaves in the order of their index, and between equals of their
// last use, in buckets by class and bin of age. While what was gained does not
// pay for more, only leaves go that an LRU cache would not hold either, and
// LRU's victim when there are none. Where LRU's victim is worth little more, it
// goes, too. What the learner does not know yet was used before all that it
// knows, and goes first, as LRU has it.
//
// The links of a bucket are Node::older and newer. A step is O(1), but for a
// parent that becomes a leaf: it is put in its place among the leaves of its
// class and age. Changes of the order between buckets are made up for when the
// next victim is asked for: O(log classes) for each class that changed.
class ReusePolicy : public EvictionPolicy, public ReuseObserver {
 public:
  // The learner outlives this, and tells it what changes.
  ReusePolicy(ReuseLearner* learner, uint32_t quota_class);
  ~ReusePolicy() override { Detach(); }
  ReusePolicy(const ReusePolicy&) = delete;
  ReusePolicy& operator=(const ReusePolicy&) = delete;

  void Add(Node& node) override {
    if (node.is_leaf()) Enter(node);
  }
  void Remove(Node& node) override {
    if (node.is_leaf()) Leave(node);
  }
  void AddFront(Node&, Node&) override {}  // the front is no leaf
  void AddEarlier(Node& node) override {
    if (node.is_leaf() && !IsListed(node)) earlier_.Add(node);
  }
  // Enters those that the learner knows already, the newest first.
  bool Fill(uint32_t nodes) override;
  bool Shrink(uint32_t nodes) override;
  void LeafChanged(Node& node) override {
    node.is_leaf() ? Enter(node) : Leave(node);
  }
  // The only leaf of a path is at its end.
  void BeforeUse(Node& node) override {
    if (!node.is_locked()) Remove(node);
  }
  void AfterUse(Node& node) override {
    if (!node.is_locked()) Add(node);
  }
  Node* Victim() override;
  EvictionRank RankOf(const Node& victim) const override;
  void AppendViolations(const Node& node,
                        std::vector<std::string>& violations) const override;
  std::optional<size_t> leaf_count() const override {
    return leaves_ + *earlier_.leaf_count();
  }

  void BeforeAgeing(Node& leaf) override { Leave(leaf); }
  void AfterAgeing(Node& leaf) override { Enter(leaf); }
  void LeftShadow(const Node& leaf) override {
    outside_.MarkChanged(leaf.run.reuse_class);
  }
  void IndexChanged(uint32_t reuse_class) override {
    if (bins_[reuse_class] != 0) MarkChanged(reuse_class);
  }

 private:
  struct Bucket {
    Node* oldest = nullptr;
    Node* newest = nullptr;
  };
  static uint32_t BucketOf(const Node& node) {
    return node.run.reuse_class * kAgeBins + node.run.bin;
  }
  void Detach();
  // Whether the leaf is in a bucket.
  bool IsListed(const Node& leaf) const;
  void Enter(Node& leaf);
  // Does nothing when it was not told of the leaf yet.
  void Leave(Node& leaf);
  static void LinkBetween(Node& leaf, Node* older, Node* newer);
  void MarkChanged(uint32_t reuse_class) {
    all_.MarkChanged(reuse_class);
    outside_.MarkChanged(reuse_class);
  }
  // The leaf that is worth least, of all or of those that LRU would not hold;
  // null when there is none.
  Node* Least(bool is_outside);
  ClassTournament::First FirstOf(uint32_t reuse_class, bool is_outside) const;

  ReuseLearner* learner_;  // null: it is not in use any more
  const uint32_t quota_class_;
  // Leaves that the learner does not know; while it is filled, more of them.
  RankedPolicy earlier_{EvictionPolicyKind::kLru};
  size_t leaves_ = 0;                              // in buckets
  absl::flat_hash_map<uint32_t, Bucket> buckets_;  // none is empty
  std::array<uint64_t, kReuseClasses> bins_{};     // with leaves, by class
  ClassTournament all_;
  ClassTournament outside_;  // of the leaves that LRU would not hold
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_POLICY_H_
