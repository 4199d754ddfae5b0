#ifndef PANDO_CORE_REUSE_REUSE_POLICY_H_
#define PANDO_CORE_REUSE_REUSE_POLICY_H_

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/eviction/eviction_policy.h"
#include "core/eviction/ranked_policy.h"
#include "core/reuse/class_tournament.h"
#include "core/reuse/reuse_class.h"
#include "core/reuse/reuse_learner.h"

namespace pando {

// The order of policy `reuse`: the unlocked leaf with the least index
// (ReuseTables) goes first, of equals the least recently used. Exceptions:
// - leaves that the learner does not know yet go before all others, in the
//   order of LRU, because they were used before all that it knows;
// - while the learner is warming up, LRU's victim goes;
// - LRU's victim goes instead if its index is not much higher;
// - while the gain does not pay for more (ReuseLearner::MayOwe), only leaves
//   that an LRU cache would not hold either may go, and LRU's victim if there
//   are none.
//
// Leaves are in buckets by class and bin of age. The links of a bucket are
// Node::older and newer. A change is O(1), except that a parent which becomes a
// leaf must be inserted at its place in its bucket. The order between buckets
// is only updated when the next victim is asked for: O(log classes) for each
// class that changed.
class ReusePolicy : public EvictionPolicy, public ReuseObserver {
 public:
  // Becomes the learner's observer for the class. The learner outlives this, or
  // Shrink is called before the learner goes.
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
  // Enters the leaves that the learner knows already, the newest first.
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

  void Ages(Node& leaf, Run& run, uint32_t bin) override;
  void LeftShadow(const Node& leaf) override {
    outside_.MarkChanged(learner_->RunOf(leaf).reuse_class);
  }
  void IndexChanged(uint32_t reuse_class) override {
    if (buckets_[reuse_class].bins == 0) return;
    FitIndexes(reuse_class);
    MarkChanged(reuse_class);
  }

 private:
  struct Bucket {
    Node* oldest = nullptr;
    Node* newest = nullptr;
  };
  // The buckets of a class that have leaves, in the order of their bins.
  struct ClassBuckets {
    uint64_t bins = 0;  // a bit for each bin that has leaves
    std::vector<Bucket> buckets;

    // Where the bucket of a bin is, or would be.
    int PlaceOf(uint32_t bin) const {
      return std::popcount(bins & ((uint64_t{1} << bin) - 1));
    }
  };
  // Return, make and remove the bucket of runs of this class and age.
  const Bucket* FindBucket(const Run& run) const;
  Bucket* FindBucket(const Run& run) {
    return const_cast<Bucket*>(std::as_const(*this).FindBucket(run));
  }
  Bucket& MakeBucket(const Run& run);
  // Fits the indexes of a class that has leaves as soon as they change, so that
  // a call that evicts need not fit those of many classes.
  void FitIndexes(uint32_t reuse_class) const {
    learner_->tables().index(reuse_class, 0);
  }
  void RemoveBucket(const Run& run);
  void Detach();
  // Whether the leaf is in a bucket.
  bool IsListed(const Node& leaf) const;
  void Enter(Node& leaf);
  // Does nothing if the leaf was never entered.
  void Leave(Node& leaf);
  static void LinkBetween(Node& leaf, Node* older, Node* newer);
  void MarkChanged(uint32_t reuse_class) {
    all_.MarkChanged(reuse_class);
    outside_.MarkChanged(reuse_class);
  }
  // The leaf with the least index: of all, or with `is_outside` of those that
  // LRU would not hold. Null if there is none.
  Node* Least(bool is_outside);
  ClassTournament::First FirstOf(uint32_t reuse_class, bool is_outside) const;

  ReuseLearner* learner_;  // null once Shrink was called
  const uint32_t quota_class_;
  // The leaves that the learner does not know, and during Fill also those that
  // are not entered yet.
  RankedPolicy earlier_{EvictionPolicyKind::kLru};
  size_t leaves_ = 0;                                  // in buckets
  std::array<ClassBuckets, kReuseClasses> buckets_{};  // by class
  ClassTournament all_;
  ClassTournament outside_;  // of the leaves that LRU would not hold
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_POLICY_H_
