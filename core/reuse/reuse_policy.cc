#include "core/reuse/reuse_policy.h"

#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/eviction/eviction_rank.h"

namespace pando {
namespace {

// Another leaf goes instead of LRU's victim only if its index is below this
// share of the index of LRU's victim.
constexpr float kMargin = 0.7f;

}  // namespace

ReusePolicy::ReusePolicy(ReuseLearner* learner, uint32_t quota_class)
    : learner_(learner), quota_class_(quota_class) {
  learner_->SetObserver(quota_class, this);
}

void ReusePolicy::Detach() {
  if (learner_ != nullptr) learner_->SetObserver(quota_class_, nullptr);
  learner_ = nullptr;
}

bool ReusePolicy::Fill(uint32_t nodes) {
  for (; nodes > 0; --nodes) {
    Node* const newest = earlier_.Last();
    if (newest == nullptr || !ReuseLearner::Knows(*newest)) return true;
    earlier_.Remove(*newest);
    Enter(*newest);
  }
  return false;
}

// Detaches at once, because the learner may be deleted before all nodes are
// forgotten.
bool ReusePolicy::Shrink(uint32_t nodes) {
  Detach();
  return earlier_.Shrink(nodes);
}

Node* ReusePolicy::Victim() {
  if (Node* const unknown = earlier_.Victim()) return unknown;
  Node* const lru = learner_->OldestUnlocked(quota_class_);
  if (lru == nullptr || learner_->IsWarmingUp()) return lru;
  Node* const least = Least(/*is_outside=*/!learner_->MayOwe());
  if (least == nullptr) return lru;
  return learner_->IndexOf(*least) < kMargin * learner_->IndexOf(*lru) ? least
                                                                       : lru;
}

// Floats that are not negative have the same order as their bits. A victim that
// the gain does not pay for gets the last rank.
EvictionRank ReusePolicy::RankOf(const Node& victim) const {
  int64_t key = 0;
  if (ReuseLearner::Knows(victim) && !learner_->IsWarmingUp()) {
    const bool is_paid = learner_->MayOwe() || !victim.run.is_in_shadow;
    key = is_paid ? std::bit_cast<int32_t>(learner_->IndexOf(victim))
                  : std::numeric_limits<int64_t>::max();
  }
  return {key, victim.last_access, victim.id};
}

// A leaf that ages or is used comes last in its new bucket. A parent that
// becomes a leaf may belong further in front; its place is searched for from
// both ends.
void ReusePolicy::Enter(Node& leaf) {
  if (!ReuseLearner::Knows(leaf)) {
    earlier_.Add(leaf);
    return;
  }
  ++leaves_;
  Bucket& bucket = buckets_[BucketOf(leaf)];
  Node* before = bucket.newest;
  Node* after = bucket.oldest;
  while (before != nullptr && leaf.last_access < before->last_access) {
    if (leaf.last_access < after->last_access) {
      before = after->older;
      break;
    }
    before = before->older;
    after = after->newer;
  }
  LinkBetween(leaf, before, before == nullptr ? bucket.oldest : before->newer);
  if (leaf.older == nullptr) bucket.oldest = &leaf;
  if (leaf.newer == nullptr) bucket.newest = &leaf;
  bins_[leaf.run.reuse_class] |= uint64_t{1} << leaf.run.bin;
  MarkChanged(leaf.run.reuse_class);
}

void ReusePolicy::Leave(Node& leaf) {
  if (!IsListed(leaf)) {
    earlier_.Forget(leaf);
    return;
  }
  --leaves_;
  const auto it = buckets_.find(BucketOf(leaf));
  Bucket& bucket = it->second;
  (leaf.older == nullptr ? bucket.oldest : leaf.older->newer) = leaf.newer;
  (leaf.newer == nullptr ? bucket.newest : leaf.newer->older) = leaf.older;
  leaf.older = leaf.newer = nullptr;
  if (bucket.oldest == nullptr) {
    buckets_.erase(it);
    bins_[leaf.run.reuse_class] &= ~(uint64_t{1} << leaf.run.bin);
  }
  MarkChanged(leaf.run.reuse_class);
}

bool ReusePolicy::IsListed(const Node& leaf) const {
  if (leaf.older != nullptr || leaf.newer != nullptr) return true;
  const auto it = buckets_.find(BucketOf(leaf));
  return it != buckets_.end() && it->second.oldest == &leaf;
}

void ReusePolicy::LinkBetween(Node& leaf, Node* older, Node* newer) {
  leaf.older = older;
  leaf.newer = newer;
  if (older != nullptr) older->newer = &leaf;
  if (newer != nullptr) newer->older = &leaf;
}

// In a bucket, the leaves that LRU would not hold come first.
ClassTournament::First ReusePolicy::FirstOf(uint32_t reuse_class,
                                            bool is_outside) const {
  ClassTournament::First first;
  for (uint64_t bins = bins_[reuse_class]; bins != 0; bins &= bins - 1) {
    const auto bin = static_cast<uint32_t>(std::countr_zero(bins));
    const float index = learner_->tables().index(reuse_class, bin);
    if (first.leaf != nullptr && first.index < index) continue;
    Node* const oldest = buckets_.at(reuse_class * kAgeBins + bin).oldest;
    if (is_outside && oldest->run.is_in_shadow) continue;
    const ClassTournament::First other{oldest, index, oldest->last_access};
    if (other.Precedes(first)) first = other;
  }
  return first;
}

Node* ReusePolicy::Least(bool is_outside) {
  return (is_outside ? outside_ : all_).Least([&](uint32_t reuse_class) {
    return FirstOf(reuse_class, is_outside);
  });
}

void ReusePolicy::AppendViolations(const Node& node,
                                   std::vector<std::string>& violations) const {
  if (!node.is_leaf()) return;
  if (!ReuseLearner::Knows(node)) {
    earlier_.AppendViolations(node, violations);
    return;
  }
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    violations.push_back(absl::StrCat("reuse: node ", node.id, " is ", what));
  };
  const auto it = buckets_.find(BucketOf(node));
  const bool is_listed =
      it != buckets_.end() &&
      (node.older == nullptr ? it->second.oldest : node.older->newer) ==
          &node &&
      (node.newer == nullptr ? it->second.newest : node.newer->older) == &node;
  expect(is_listed, "missing in the order");
  if (!is_listed || node.older == nullptr) return;
  expect(BucketOf(*node.older) == BucketOf(node), "in the order of others");
  expect(node.older->last_access < node.last_access,
         "too far back in the order");
}

}  // namespace pando
