// Compares each policy's victims with those that a search of all nodes finds.

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/eviction/eviction_policy.h"
#include "core/tree/radix_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

using Kind = EvictionPolicyKind;

// Returns the key by which a policy compares nodes. The node with the smallest
// key is evicted first.
std::tuple<int64_t, int64_t, int64_t> KeyOf(Kind policy, const Node& node) {
  const auto access = static_cast<int64_t>(node.last_access);
  const auto id = static_cast<int64_t>(node.id);
  switch (policy) {
    case Kind::kLru:
    case Kind::kReuse:  // at first
      return {access, id, 0};
    case Kind::kLfu:
      return {node.hit_count, access, id};
    case Kind::kFifo:
      return {id, 0, 0};
    case Kind::kMru:
      return {-access, id, 0};
    case Kind::kFilo:
      return {-id, 0, 0};
    case Kind::kPriority:
      return {node.priority, access, id};
    case Kind::kSlru:
      return {node.hit_count >= 2 ? 1 : 0, access, id};
  }
  return {};
}

// A test with random trees that finds every victim by a search of all nodes,
// too.
class PolicyOracleTest : public testing::TestWithParam<Kind> {
 protected:
  uint32_t Below(uint32_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }

  TreePosition Find(const std::vector<Token>& tokens) {
    return tree_.Walk(EndOf(*tree_.FindOrMakeNamespace({}).root), tokens,
                      static_cast<uint32_t>(tokens.size()), nullptr);
  }

  void Add(const std::vector<Token>& tokens, const Use& use) {
    const TreePosition position = Find(tokens);
    if (position.pages() == tokens.size()) {
      return tree_.Touch(position.LastWholeNode(), use);
    }
    std::vector<PageId> pages;
    while (position.pages() + pages.size() < tokens.size()) {
      pages.push_back(PageId(++last_page_));
    }
    const auto rest = std::span(tokens).last(pages.size());
    tree_.AddLeaf(tree_.NodeEndingAt(position), SegmentRef::Copy(rest, pages),
                  use);
  }

  std::vector<Token> AnyPrompt() {
    std::vector<Token> tokens(1 + Below(12));
    for (Token& token : tokens) token = Below(4) / 3;
    return tokens;
  }

  void GrowAtRandom() {
    const auto tokens = AnyPrompt();
    const uint32_t kind = Below(10);
    if (kind < 5) {
      return Add(tokens, {.is_hit = Below(4) > 0,
                          .priority = static_cast<int32_t>(Below(4))});
    }
    if (kind < 7) return tree_.Touch(Find(tokens).LastWholeNode());
    if (kind < 9) {
      Node& node = tree_.NodeEndingAt(Find(tokens));
      tree_.Lock(node);
      locked_.push_back(&node);
    } else if (!locked_.empty()) {
      uint32_t steps = 1000;  // more than there are nodes
      tree_.Unlock(*locked_.back(), steps);
      locked_.pop_back();
    }
  }

  // Returns the last page of the unlocked leaf with the smallest key.
  std::optional<PageId> NextVictim(Kind policy) {
    const Node* best = nullptr;
    tree_.ForEachNode([&](const Node& node) {
      if (!node.is_leaf() || node.is_locked()) return;
      if (best == nullptr || KeyOf(policy, node) < KeyOf(policy, *best)) {
        best = &node;
      }
    });
    if (best == nullptr) return std::nullopt;
    return best->pages().back();
  }

  std::optional<PageId> EvictOne() {
    std::vector<PageId> evicted;
    std::vector<uint32_t> limits = {1};
    tree_.Evict(
        1, limits, [](const Node&, uint32_t) {}, evicted);
    if (evicted.empty()) return std::nullopt;
    return evicted.front();
  }

  // Flushes some of the cells.
  void FlushSome() {
    std::vector<PageId> evicted;
    for (int i = 0; i < 20; ++i) {
      tree_.EvictFrom(
          Below(tree_.node_cells()), std::nullopt, kMaxPages,
          [](const Node&, uint32_t) {}, evicted);
    }
  }

  std::vector<std::string> Violations() const {
    std::vector<std::string> violations;
    tree_.ForEachNode([&](const Node& node) {
      tree_.AppendViolations(node, node.lock_count, violations);
    });
    return violations;
  }

  static constexpr uint32_t kMaxPages = 10'000;
  std::mt19937_64 random_;
  const QuotaClasses classes_{{}};
  RadixTree tree_{1, kMaxPages, GetParam(), &classes_};
  std::vector<Node*> locked_;
  uint32_t last_page_ = 0;
};

TEST_P(PolicyOracleTest, EvictsTheSmallestKeyOfAllUnlockedLeaves) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    for (int i = 0; i < 60; ++i) GrowAtRandom();
    for (uint32_t left = Below(60); left > 0; --left) {
      const std::optional<PageId> expected = NextVictim(GetParam());
      ASSERT_EQ(EvictOne(), expected);
    }
  }
}

TEST_P(PolicyOracleTest, ASwitchReordersWhatIsThere) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    for (int i = 0; i < 60; ++i) GrowAtRandom();
    const auto policy = static_cast<Kind>(Below(8));
    const uint32_t evictable = tree_.evictable_pages();
    tree_.SetPolicy(policy);
    EXPECT_EQ(tree_.evictable_pages(), evictable);
    for (uint32_t left = Below(60); left > 0; --left) {
      const std::optional<PageId> expected = NextVictim(policy);
      ASSERT_EQ(EvictOne(), expected) << EvictionPolicyName(policy);
    }
    tree_.SetPolicy(GetParam());
  }
}

// Between the steps of a change, the tree grows, is used, locked, evicted and
// flushed, and other policy changes begin.
TEST_P(PolicyOracleTest, AChangeInStepsKeepsTheOldOrderUntilTheNewIsInUse) {
  const uint64_t first = FromEnvironment("PANDO_TEST_SEED", 1);
  int switches = 0;
  int evicted_meanwhile = 0;
  for (uint64_t seed = first; seed < first + 6; ++seed) {
    SCOPED_TRACE(seed);
    random_.seed(seed);
    Kind wanted = tree_.policy();
    bool is_over = true;
    for (int i = 0; i < 400; ++i) {
      GrowAtRandom();
      if (Below(is_over ? 4 : 60) == 0) {
        const auto policy = static_cast<Kind>(Below(8));
        ASSERT_EQ(tree_.BeginPolicy(policy), wanted);
        wanted = policy;
        is_over = false;
      }
      const Kind before = tree_.policy();
      if (!is_over) is_over = tree_.StepPolicy(1 + Below(60));
      ASSERT_TRUE(tree_.policy() == before || tree_.policy() == wanted);
      ASSERT_TRUE(!is_over || tree_.policy() == wanted);
      switches += tree_.policy() != before;
      ASSERT_THAT(Violations(), IsEmpty());
      if (Below(40) == 0) FlushSome();
      for (uint32_t left = Below(3); left > 0; --left) {
        const std::optional<PageId> expected = NextVictim(tree_.policy());
        ASSERT_EQ(EvictOne(), expected) << EvictionPolicyName(tree_.policy());
        evicted_meanwhile += !is_over && expected.has_value();
      }
    }
    tree_.SetPolicy(wanted);
    while (const std::optional<PageId> expected = NextVictim(wanted)) {
      ASSERT_EQ(EvictOne(), expected) << EvictionPolicyName(wanted);
    }
  }
  EXPECT_GT(switches, 30);
  EXPECT_GT(evicted_meanwhile, 30);
}

INSTANTIATE_TEST_SUITE_P(Policies, PolicyOracleTest,
                         testing::Values(Kind::kLru, Kind::kLfu, Kind::kFifo,
                                         Kind::kMru, Kind::kFilo,
                                         Kind::kPriority, Kind::kSlru,
                                         Kind::kReuse),
                         [](const testing::TestParamInfo<Kind>& kind) {
                           return std::string(EvictionPolicyName(kind.param));
                         });

}  // namespace
}  // namespace pando
