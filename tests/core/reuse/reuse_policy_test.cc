// Compares the victims of the policy reuse with those that a search of all
// nodes finds, in random trees.

#include "core/reuse/reuse_policy.h"

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/tree/radix_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

using Kind = EvictionPolicyKind;

class ReusePolicyTest : public testing::Test {
 protected:
  uint32_t Below(uint32_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }

  // Admits a request for a prompt, inserts its missing part, and unlocks some
  // of the prompts in use.
  void Request() {
    std::vector<Token> tokens(1 + Below(12));
    for (Token& token : tokens) token = Below(5) / 3;
    const TreePosition found =
        tree_.Walk(EndOf(*tree_.FindOrMakeNamespace({}).root), tokens,
                   static_cast<uint32_t>(tokens.size()), nullptr);
    RequestFacts facts =
        tree_.BeginRequest(static_cast<uint32_t>(tokens.size()), found.pages());
    facts.output_tokens = Below(1000);
    const size_t missing = tokens.size() - found.pages();
    Node& end = tree_.NodeEndingAt(found);
    tree_.Lock(end);
    tree_.Touch(end, {.request = &facts});
    Node* locked = &end;
    if (missing > 0) {
      std::vector<PageId> pages;
      while (pages.size() < missing) pages.push_back(PageId(++last_page_));
      Node& leaf = tree_.AddLeaf(
          end, SegmentRef::Copy(std::span(tokens).last(pages.size()), pages),
          {.request = &facts});
      tree_.MoveLock(end, leaf);
      locked = &leaf;
    }
    locked_.push_back(locked);
    while (locked_.size() > 3 || (!locked_.empty() && Below(2) == 0)) {
      const size_t i = Below(static_cast<uint32_t>(locked_.size()));
      uint32_t steps = std::numeric_limits<uint32_t>::max();
      tree_.Unlock(*locked_[i], steps);
      locked_.erase(locked_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  // Finds the victim by definition: the leaf with the least index, among all
  // leaves while the debt is covered, otherwise among those that LRU would not
  // hold. LRU's own victim is evicted instead if its index is not much larger,
  // and during the warm-up.
  const Node* NextVictim() {
    const ReuseLearner& learner = *tree_.learner();
    const Node* least = nullptr;
    const Node* lru = nullptr;
    const auto rank = [&](const Node& node) {
      return std::tuple(learner.IndexOf(node), node.last_access);
    };
    tree_.ForEachNode([&](const Node& node) {
      if (!node.is_leaf() || node.is_locked()) return;
      if (lru == nullptr || node.last_access < lru->last_access) lru = &node;
      if (learner.RunOf(node).is_in_shadow && !learner.MayOwe()) return;
      if (least == nullptr || rank(node) < rank(*least)) least = &node;
    });
    if (learner.IsWarmingUp() || least == nullptr) return lru;
    if (!(learner.IndexOf(*least) < 0.7f * learner.IndexOf(*lru))) return lru;
    ++(learner.MayOwe() ? paid_ : outside_);
    return least;
  }

  std::optional<PageId> EvictOne() {
    std::vector<PageId> evicted;
    std::vector<uint32_t> limits = {1};
    tree_.Evict(
        1, limits, [](const Node&, uint32_t) {}, evicted);
    if (evicted.empty()) return std::nullopt;
    return evicted.front();
  }

  bool IsFull() const {
    return tree_.evictable_pages() > 0 &&
           tree_.evictable_pages() + tree_.protected_pages() > kMaxPages;
  }

  void CheckTree() {
    std::vector<std::string> violations;
    tree_.ForEachNode([&](const Node& node) {
      tree_.AppendViolations(node, node.lock_count, violations);
    });
    ASSERT_THAT(violations, IsEmpty());
  }

  static constexpr uint32_t kMaxPages = 60;
  std::mt19937_64 random_;
  const QuotaClasses classes_{{}};
  RadixTree tree_{1, kMaxPages, Kind::kReuse, &classes_, {.warmup_ticks = 100}};
  std::vector<Node*> locked_;
  uint32_t last_page_ = 0;
  // Victims that LRU would not have chosen: those chosen while more debt was
  // covered, and the others.
  uint32_t paid_ = 0;
  uint32_t outside_ = 0;
};

TEST_F(ReusePolicyTest, EvictsTheLeafThatIsWorthLeastOfAllUnlocked) {
  const uint64_t seed = FromEnvironment("PANDO_TEST_SEED", 1);
  SCOPED_TRACE(seed);
  random_.seed(seed);
  for (int i = 0; i < 4000; ++i) {
    Request();
    while (IsFull()) {
      const Node* const expected = NextVictim();
      const PageId page = expected->pages().back();
      ASSERT_EQ(EvictOne(), page) << i;
    }
    if (i % 50 == 0) CheckTree();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(paid_, 100u);
  EXPECT_GT(outside_, 10u);
}

TEST_F(ReusePolicyTest, ASwitchToAndFroKeepsTheOrderWhole) {
  random_.seed(1);
  for (int i = 0; i < 400; ++i) {
    Request();
    if (Below(10) == 0) tree_.SetPolicy(static_cast<Kind>(Below(8)));
    while (IsFull()) EvictOne();
    CheckTree();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace pando
