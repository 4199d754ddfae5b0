// Tests copies of a tree that changes while they are made.

#include "service/console/tree_copy.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "service/console/forest.h"
#include "tests/service/console/grown_cache.h"

namespace pando {
namespace {

TEST(TreeCopyTest, NoPartIsLong) {
  constexpr uint32_t kNodes = 20'000;
  GrownCache cache(kNodes + 1);
  for (Token i = 0; i < kNodes; ++i) cache.Publish({i});
  uint32_t nodes = 0;
  uint32_t parts = 0;
  uint32_t block = 0;
  do {
    const TreePart part = cache->CopyTree(block);
    EXPECT_LE(part.nodes.size(), 2'048u);
    nodes += static_cast<uint32_t>(part.nodes.size());
    ++parts;
    block = part.next_block;
  } while (block != 0);
  EXPECT_EQ(nodes, kNodes);
  EXPECT_GE(parts, kNodes / 2'048);
}

TEST(TreeCopyTest, ACopyOfACacheAtRestHasAllOfIt) {
  GrownCache cache(4'000);
  std::mt19937 random(1);
  cache.PublishAtRandom(500, random);
  const Forest forest(CopyWholeTree(*cache));
  const CacheStats stats = cache->Stats();
  EXPECT_EQ(forest[Forest::kEverything].below.nodes, stats.nodes);
  EXPECT_EQ(forest[Forest::kEverything].below.locked_pages,
            stats.pages.protected_);
  EXPECT_EQ(forest[Forest::kEverything].below.pages,
            stats.pages.protected_ + stats.pages.evictable);
}

// Splits put new parents above the nodes of a locked prompt, in places of the
// slab that the copy has already passed. Evictions remove nodes that were
// already copied.
TEST(TreeCopyTest, ALockedPromptIsInEveryCopyWhateverHappensMeanwhile) {
  constexpr uint32_t kLength = 400;
  constexpr int kCopies = 300;
  GrownCache cache(30'000);
  for (Token i = 0; i < 20'000; ++i) cache.Publish({1'000'000 + i});
  const std::vector<Token> locked(kLength, 7);
  cache.Publish(locked);
  cache.Lock(locked);

  std::atomic<bool> stop = false;
  std::thread churn([&] {
    std::mt19937 random(2);
    while (!stop) {
      std::vector<Token> prompt(1 + random() % (kLength - 1), 7);
      prompt.push_back(static_cast<Token>(8 + random() % 1'000));
      cache.Publish(prompt);
      if (random() % 4 == 0) cache->Evict(random() % 2'000);
    }
  });
  for (int i = 0; i < kCopies; ++i) {
    const Forest forest(CopyWholeTree(*cache));
    uint32_t ends = 0;
    for (Forest::Index b = 0; b < forest.size(); ++b) {
      const NodeCopy* node = forest[b].node;
      if (node != nullptr && node->locks > 0 && node->end_page() == kLength) {
        ++ends;
      }
    }
    EXPECT_EQ(ends, 1u);
  }
  stop = true;
  churn.join();
}

TEST(TreeCopyTest, TokensOfANodeAreItsFirstOnes) {
  GrownCache cache(100);
  cache.Publish({5, 6, 7, 8});
  const TreeCopy copy = CopyWholeTree(*cache);
  ASSERT_EQ(copy.nodes.size(), 1u);
  const NodeHandle handle = copy.nodes[0].handle;
  EXPECT_EQ(cache->CopyTokens(handle, 100), (std::vector<Token>{5, 6, 7, 8}));
  EXPECT_EQ(cache->CopyTokens(handle, 2), (std::vector<Token>{5, 6}));
  cache->Flush();
  EXPECT_TRUE(cache->CopyTokens(handle, 100).empty());
  EXPECT_TRUE(cache->CopyTokens(12345, 100).empty());
}

}  // namespace
}  // namespace pando
