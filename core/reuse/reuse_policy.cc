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
    if (newest == nullptr || !learner_->Knows(*newest)) return true;
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
  if (learner_->Knows(victim) && !learner_->IsWarmingUp()) {
    const bool is_paid =
        learner_->MayOwe() || !learner_->RunOf(victim).is_in_shadow;
    key = is_paid ? std::bit_cast<int32_t>(learner_->IndexOf(victim))
                  : std::numeric_limits<int64_t>::max();
  }
  return {key, victim.last_access, victim.id};
}

// A leaf that ages or is used comes last in its new bucket. A parent that
// becomes a leaf may belong further in front; its place is searched for from
// both ends.
void ReusePolicy::Enter(Node& leaf) {
  if (!learner_->Knows(leaf)) {
    earlier_.Add(leaf);
    return;
  }
  ++leaves_;
  learner_->SetListed(leaf, true);
  const Run& run = learner_->RunOf(leaf);
  Bucket& bucket = MakeBucket(run);
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
  MarkChanged(run.reuse_class);
}

void ReusePolicy::Leave(Node& leaf) {
  if (!IsListed(leaf)) {
    earlier_.Forget(leaf);
    return;
  }
  --leaves_;
  learner_->SetListed(leaf, false);
  const Run& run = learner_->RunOf(leaf);
  Bucket& bucket = *FindBucket(run);
  (leaf.older == nullptr ? bucket.oldest : leaf.older->newer) = leaf.newer;
  (leaf.newer == nullptr ? bucket.newest : leaf.newer->older) = leaf.older;
  leaf.older = leaf.newer = nullptr;
  if (bucket.oldest == nullptr) RemoveBucket(run);
  MarkChanged(run.reuse_class);
}

bool ReusePolicy::IsListed(const Node& leaf) const {
  return learner_->Knows(leaf) && learner_->RunOf(leaf).is_listed;
}

const ReusePolicy::Bucket* ReusePolicy::FindBucket(const Run& run) const {
  const ClassBuckets& of_class = buckets_[run.reuse_class];
  if ((of_class.bins >> run.bin & 1) == 0) return nullptr;
  return &of_class.buckets[of_class.PlaceOf(run.bin)];
}

ReusePolicy::Bucket& ReusePolicy::MakeBucket(const Run& run) {
  ClassBuckets& of_class = buckets_[run.reuse_class];
  const auto place = of_class.buckets.begin() + of_class.PlaceOf(run.bin);
  if (of_class.bins >> run.bin & 1) return *place;
  if (of_class.bins == 0) FitIndexes(run.reuse_class);
  of_class.bins |= uint64_t{1} << run.bin;
  return *of_class.buckets.emplace(place);
}

// Leaves age in the order of their buckets, so the oldest leaf of one bucket
// usually becomes the newest of the next.
void ReusePolicy::Ages(Node& leaf, Run& run, uint32_t bin) {
  ClassBuckets& of_class = buckets_[run.reuse_class];
  const int place = of_class.PlaceOf(run.bin);
  const bool has_next = of_class.bins >> bin & 1;
  Bucket& bucket = of_class.buckets[place];
  Bucket* const next = has_next ? &of_class.buckets[place + 1] : nullptr;
  if (bucket.oldest == bucket.newest && !has_next) {
    of_class.bins ^= uint64_t{1} << run.bin | uint64_t{1} << bin;
    run.bin = static_cast<uint8_t>(bin);
  } else if (bucket.oldest != bucket.newest && bucket.oldest == &leaf &&
             has_next && next->newest->last_access < leaf.last_access) {
    bucket.oldest = leaf.newer;
    bucket.oldest->older = nullptr;
    LinkBetween(leaf, next->newest, nullptr);
    next->newest = &leaf;
    run.bin = static_cast<uint8_t>(bin);
  } else {
    Leave(leaf);
    run.bin = static_cast<uint8_t>(bin);
    Enter(leaf);
  }
  MarkChanged(run.reuse_class);
}

void ReusePolicy::RemoveBucket(const Run& run) {
  ClassBuckets& of_class = buckets_[run.reuse_class];
  of_class.bins &= ~(uint64_t{1} << run.bin);
  of_class.buckets.erase(of_class.buckets.begin() + of_class.PlaceOf(run.bin));
}

void ReusePolicy::LinkBetween(Node& leaf, Node* older, Node* newer) {
  leaf.older = older;
  leaf.newer = newer;
  if (older != nullptr) older->newer = &leaf;
  if (newer != nullptr) newer->older = &leaf;
}

// In a bucket, the leaves that LRU would not hold come first. The oldest bins
// usually have the least index, so they come first: other buckets are not
// fetched from memory.
ClassTournament::First ReusePolicy::FirstOf(uint32_t reuse_class,
                                            bool is_outside) const {
  ClassTournament::First first;
  const ClassBuckets& of_class = buckets_[reuse_class];
  auto bucket = of_class.buckets.end();
  for (uint64_t bins = of_class.bins; bins != 0;) {
    const auto bin = static_cast<uint32_t>(std::bit_width(bins)) - 1;
    bins ^= uint64_t{1} << bin;
    --bucket;
    const float index = learner_->tables().index(reuse_class, bin);
    if (first.leaf != nullptr && first.index < index) continue;
    Node* const oldest = bucket->oldest;
    if (is_outside && learner_->RunOf(*oldest).is_in_shadow) continue;
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
  if (!learner_->Knows(node)) {
    earlier_.AppendViolations(node, violations);
    return;
  }
  const auto expect = [&](bool holds, const char* what) {
    if (holds) return;
    violations.push_back(absl::StrCat("reuse: node ", node.id, " is ", what));
  };
  const Run& run = learner_->RunOf(node);
  const Bucket* const bucket = FindBucket(run);
  const bool is_listed =
      bucket != nullptr && run.is_listed &&
      (node.older == nullptr ? bucket->oldest : node.older->newer) == &node &&
      (node.newer == nullptr ? bucket->newest : node.newer->older) == &node;
  expect(is_listed, "missing in the order");
  if (!is_listed || node.older == nullptr) return;
  const Run& older = learner_->RunOf(*node.older);
  expect(older.reuse_class == run.reuse_class && older.bin == run.bin,
         "in the order of others");
  expect(node.older->last_access < node.last_access,
         "too far back in the order");
}

}  // namespace pando
