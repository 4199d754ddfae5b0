#include "core/reuse/ghost_runs.h"

#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/reuse/prefix_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// Returns the prints of a run of `pages` pages that begins with `first`.
std::vector<PagePrint> From(PagePrint first, uint32_t pages) {
  std::vector<PagePrint> prints(pages);
  std::iota(prints.begin(), prints.end(), first);
  return prints;
}

// Adds a ghost. Before that, removes the ghosts in its way, as the learner
// does.
uint32_t Add(GhostRuns& ghosts, PagePrint first, uint32_t pages) {
  while (const auto slot = ghosts.InTheWay(pages)) ghosts.Remove(*slot);
  return ghosts.Add(From(first, pages), Run{.at = first});
}

TEST(GhostRunsTest, FindsAGhostByThePrintOfItsFirstPage) {
  GhostRuns ghosts(100);
  const uint32_t slot = Add(ghosts, 7, 3);
  EXPECT_THAT(ghosts.Find(7), Optional(slot));
  EXPECT_EQ(ghosts.pages(slot), 3u);
  EXPECT_EQ(ghosts.run(slot).at, 7u);
  EXPECT_THAT(ghosts.Find(8), Eq(std::nullopt));
  ghosts.Remove(slot);
  EXPECT_THAT(ghosts.Find(7), Eq(std::nullopt));
  EXPECT_EQ(ghosts.count(), 0u);
}

TEST(GhostRunsTest, KnowsHowManyOfItsPagesComeBack) {
  GhostRuns ghosts(100);
  const uint32_t slot = Add(ghosts, 7, 4);
  EXPECT_EQ(ghosts.CommonPages(slot, From(7, 2)), 2u);
  EXPECT_EQ(ghosts.CommonPages(slot, From(7, 9)), 4u);
  EXPECT_EQ(ghosts.CommonPages(slot, std::vector<PagePrint>{7, 8, 10, 10}), 2u);
}

TEST(GhostRunsTest, WhatIsLeftOfAGhostIsFoundByItsFirstPage) {
  GhostRuns ghosts(100);
  const uint32_t slot = Add(ghosts, 7, 4);
  ghosts.CutFront(slot, 3);
  EXPECT_THAT(ghosts.Find(7), Eq(std::nullopt));
  EXPECT_THAT(ghosts.Find(10), Optional(slot));
  EXPECT_EQ(ghosts.pages(slot), 1u);
}

TEST(GhostRunsTest, ForgetsTheOldestBeyondSixteenTimesTheCache) {
  GhostRuns ghosts(10);
  for (PagePrint first = 100; first <= 4000; first += 100) {
    const uint32_t slot = Add(ghosts, first, 8);
    EXPECT_EQ(ghosts.CommonPages(slot, From(first, 8)), 8u);
  }
  EXPECT_EQ(ghosts.count(), 20u);
  EXPECT_THAT(ghosts.Find(2000), Eq(std::nullopt));
  EXPECT_TRUE(ghosts.Find(2100).has_value());
}

TEST(GhostRunsTest, NumberIsBoundedTooAndSlotsAreUsedAgain) {
  GhostRuns ghosts(1'000'000);
  std::mt19937_64 random(1);
  for (PagePrint first = 1; first <= 3 * GhostRuns::kMaxGhosts; ++first) {
    const uint32_t slot = Add(ghosts, first, 1);
    EXPECT_LT(slot, GhostRuns::kMaxGhosts);
    if (random() % 3 == 0) ghosts.Remove(slot);
  }
  EXPECT_LE(ghosts.count(), GhostRuns::kMaxGhosts);
  EXPECT_GT(ghosts.count(), GhostRuns::kMaxGhosts / 2);
}

TEST(PrefixHashTest, APrintIsThatOfItsPageAndOfAllBefore) {
  EXPECT_EQ(NextPrint(1, 2), NextPrint(1, 2));
  EXPECT_NE(NextPrint(1, 2), NextPrint(1, 3));
  EXPECT_NE(NextPrint(1, 2), NextPrint(2, 2));
  EXPECT_NE(NextPrint(NextPrint(1, 2), 3), NextPrint(NextPrint(1, 3), 2));
}

TEST(PrefixHashTest, AnyTokenAndItsPlaceMatter) {
  std::vector<Token> tokens = {1, 2, 3, 4, 5, 6, 7};
  const std::span<const Token> page(tokens);
  const uint64_t hash = HashOfPage(page);
  for (size_t i = 0; i < page.size(); ++i) {
    ++tokens[i];
    EXPECT_NE(HashOfPage(page), hash) << i;
    --tokens[i];
    if (i == 0) continue;
    std::swap(tokens[i - 1], tokens[i]);
    EXPECT_NE(HashOfPage(page), hash) << i;
    std::swap(tokens[i - 1], tokens[i]);
  }
}

}  // namespace
}  // namespace pando
