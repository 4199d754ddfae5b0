// What PrefixCache does not show: the segments that nodes share.

#include "core/radix_tree.h"

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
    tree_.AppendViolations([](const Node&) -> uint32_t { return 0; },
                           violations);
    EXPECT_THAT(violations, IsEmpty());
  }

  TreePosition Start() { return EndOf(*tree_.MakeNamespace({}).root); }

  // Adds what is not cached of the prompt.
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

  // Pages in the segments that are alive, evicted or not.
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
  EXPECT_EQ(Evict(14), 14u);  // the older branch
  EXPECT_EQ(tree_.node_count(), 2u);
  EXPECT_EQ(SegmentPages(), 3u);
}

TEST_F(RadixTreeTest, EvictingABranchDoesNotCopyTheTrunkThatAnotherOneShares) {
  Add("aaaaaaaa");
  Add("aab");
  std::vector<PageId> found;
  const auto trunk = SpellTokens("aaaaaaaa", kPageTokens);
  tree_.Touch(*tree_.Walk(Start(), trunk, 8, &found).node);
  EXPECT_EQ(Evict(1), 1u);  // the branch
  EXPECT_EQ(SegmentPages(), 8u);
}

TEST_F(RadixTreeTest, EvictsOfANamespaceWhatIsAskedForAndNoMore) {
  Add("aab");
  Add("aac");
  Add("d");
  const auto locked = SpellTokens("aa", kPageTokens);
  Node& trunk = *tree_.Walk(Start(), locked, 2, nullptr).node;
  tree_.Lock(trunk);
  const auto evict = [&](uint32_t count) {
    std::vector<PageId> evicted;
    EXPECT_TRUE(tree_.EvictFrom(
        *trunk.ns, count, [](const Node&, uint32_t) {}, evicted));
    return evicted.size();
  };
  EXPECT_EQ(evict(0), 0u);
  EXPECT_EQ(evict(1), 1u);  // d, beside the trunk, which is looked at later
  EXPECT_EQ(evict(1), 1u);  // one branch of two
  EXPECT_EQ(evict(9), 1u);
  EXPECT_EQ(tree_.evictable_pages(), 0u);
  tree_.Unlock(trunk);
}

TEST_F(RadixTreeTest, EvictsATrunkAfterItsBranchesAndOnlyIfAskedFor) {
  Add("aab");
  Add("aac");
  std::vector<PageId> evicted;
  EXPECT_TRUE(tree_.EvictFrom(
      *Start().node->ns, 2, [](const Node&, uint32_t) {}, evicted));
  EXPECT_EQ(evicted.size(), 2u);
  EXPECT_EQ(tree_.node_count(), 1u);
}

TEST(SegmentRefTest, OfNoSegmentCopiesToNone) {
  const SegmentRef none;
  const SegmentRef copy = none;
  EXPECT_FALSE(copy);
}

}  // namespace
}  // namespace pando
