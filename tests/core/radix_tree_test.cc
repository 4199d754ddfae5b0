// Tests of segments, which nodes share and PrefixCache does not show.

#include "core/tree/radix_tree.h"

#include <numeric>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/prompts.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

class RadixTreeTest : public testing::Test {
 protected:
  void TearDown() override {
    std::vector<std::string> violations;
    tree_.ForEachNode([&](const Node& node) {
      tree_.AppendViolations(node, node.lock_count, violations);
    });
    EXPECT_THAT(violations, IsEmpty());
  }

  TreePosition Start() { return EndOf(*tree_.FindOrMakeNamespace({}).root); }

  // Adds the part of the prompt that is not cached yet.
  void Add(std::string_view letters) {
    const auto tokens = SpellTokens(letters, kPageTokens);
    const auto page_count = static_cast<uint32_t>(letters.size());
    std::vector<PageId> found;
    const TreePosition position =
        tree_.Walk(Start(), tokens, page_count, &found);
    std::vector<PageId> pages;
    while (found.size() + pages.size() < page_count) {
      pages.push_back(PageId(++last_page_));
    }
    const auto rest = std::span(tokens).last(pages.size() * kPageTokens);
    tree_.AddLeaf(tree_.NodeEndingAt(position), SegmentRef::Copy(rest, pages),
                  {});
  }

  uint32_t Evict(uint32_t pages) {
    std::vector<PageId> evicted;
    std::vector<uint32_t> limits = {pages};
    tree_.Evict(
        pages, limits, [](const Node&, uint32_t) {}, evicted);
    return static_cast<uint32_t>(evicted.size());
  }

  // Returns the number of pages in the live segments, evicted ones included.
  uint32_t SegmentPages() {
    std::set<const Segment*> segments;
    tree_.ForEachNode([&](const Node& n) { segments.insert(&*n.segment); });
    return std::accumulate(
        segments.begin(), segments.end(), 0u,
        [](uint32_t sum, const Segment* s) { return sum + s->page_count(); });
  }

  static constexpr uint32_t kPageTokens = 4;
  const QuotaClasses classes_{{}};
  RadixTree tree_{kPageTokens, 100, EvictionPolicyKind::kLru, &classes_};
  uint32_t last_page_ = 0;
};

TEST_F(RadixTreeTest, ASplitCopiesNothing) {
  Add("aaaaaaaa");
  Add("aaaab");
  EXPECT_EQ(tree_.node_count(), 3u);
  EXPECT_EQ(SegmentPages(), 9u);
}

TEST_F(RadixTreeTest, EvictedTokensDoNotStayInMemory) {
  Add("aaaaaaaaaaaaaaaa");
  for (uint32_t left = 16; left > 1; --left) {
    EXPECT_EQ(Evict(1), 1u);
    EXPECT_LE(SegmentPages(), 2 * (left - 1));
  }
}

TEST_F(RadixTreeTest, EvictedTokensOfASplitNodeDoNotStayInMemory) {
  Add("aaaaaaaaaaaaaaaa");
  Add("aab");
  EXPECT_EQ(Evict(14), 14u);  // evicts the older branch
  EXPECT_EQ(tree_.node_count(), 2u);
  EXPECT_EQ(SegmentPages(), 3u);
}

TEST_F(RadixTreeTest, EvictingABranchDoesNotCopyTheTrunkThatAnotherOneShares) {
  Add("aaaaaaaa");
  Add("aab");
  std::vector<PageId> found;
  const auto trunk = SpellTokens("aaaaaaaa", kPageTokens);
  tree_.Touch(*tree_.Walk(Start(), trunk, 8, &found).node);
  EXPECT_EQ(Evict(1), 1u);  // evicts the branch
  EXPECT_EQ(SegmentPages(), 8u);
}

TEST_F(RadixTreeTest, EvictsALeafAndWhatBecomesOneByThatAndNoMore) {
  Add("aab");
  Add("aac");
  const auto locked = SpellTokens("a", kPageTokens);
  Add("ax");
  Node& trunk = *tree_.Walk(Start(), locked, 1, nullptr).node;
  tree_.Lock(trunk);
  const auto evict_at = [&](std::string_view letters, uint32_t count) {
    const auto tokens = SpellTokens(letters, kPageTokens);
    const Node* node = tree_.Walk(Start(), tokens, 3, nullptr).node;
    std::vector<PageId> evicted;
    tree_.EvictFrom(
        Slab<Node>::IndexOf(*node), std::nullopt, count,
        [](const Node&, uint32_t) {}, evicted);
    return evicted.size();
  };
  EXPECT_EQ(evict_at("aa", 9), 0u);  // not a leaf
  EXPECT_EQ(evict_at("aab", 0), 0u);
  EXPECT_EQ(evict_at("aab", 9), 1u);  // its parent has another child
  EXPECT_EQ(evict_at("aac", 9), 2u);  // stops at the locked trunk
  EXPECT_EQ(evict_at("a", 9), 0u);
  EXPECT_EQ(tree_.evictable_pages(), 1u);
  uint32_t steps = 100;
  EXPECT_EQ(tree_.Unlock(trunk, steps), nullptr);
  EXPECT_EQ(steps, 99u);
}

TEST_F(RadixTreeTest, ANamespaceGoesWithItsLastNode) {
  Add("aab");
  Add("aac");
  std::vector<PageId> evicted;
  for (uint32_t cell = 0; cell < tree_.node_cells(); ++cell) {
    tree_.EvictFrom(
        cell, std::nullopt, 9, [](const Node&, uint32_t) {}, evicted);
  }
  EXPECT_EQ(evicted.size(), 4u);
  EXPECT_EQ(tree_.namespace_count(), 0u);
}

TEST(SegmentRefTest, OfNoSegmentCopiesToNone) {
  const SegmentRef none;
  const SegmentRef copy = none;
  EXPECT_FALSE(copy);
}

}  // namespace
}  // namespace pando
