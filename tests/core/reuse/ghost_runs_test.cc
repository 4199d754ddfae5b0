#include "core/reuse/ghost_runs.h"

#include <random>

#include "core/reuse/prefix_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::Eq;
using ::testing::Optional;

// Adds a ghost, and removes what is in its way as the learner does.
uint32_t Add(GhostRuns& ghosts, uint64_t hash, uint32_t pages) {
  while (const auto slot = ghosts.InTheWay(1, pages)) ghosts.Remove(*slot);
  return ghosts.Add(hash, Run{.prefix_hash = ~hash}, pages);
}

TEST(GhostRunsTest, FindsAGhostByTheHashOfItsFirstPage) {
  GhostRuns ghosts(100);
  const uint32_t slot = Add(ghosts, 7, 3);
  EXPECT_THAT(ghosts.Find(7), Optional(slot));
  EXPECT_EQ(ghosts.pages(slot), 3u);
  EXPECT_EQ(ghosts.run(slot).prefix_hash, ~uint64_t{7});
  EXPECT_THAT(ghosts.Find(8), Eq(std::nullopt));
  ghosts.Remove(slot);
  EXPECT_THAT(ghosts.Find(7), Eq(std::nullopt));
  EXPECT_EQ(ghosts.page_count(), 0u);
}

TEST(GhostRunsTest, ForgetsTheOldestBeyondSixteenTimesTheCache) {
  GhostRuns ghosts(10);
  for (uint64_t hash = 1; hash <= 40; ++hash) Add(ghosts, hash, 8);
  EXPECT_EQ(ghosts.page_count(), 160u);
  EXPECT_THAT(ghosts.Find(20), Eq(std::nullopt));
  EXPECT_TRUE(ghosts.Find(21).has_value());
}

TEST(GhostRunsTest, NumberIsBoundedTooAndSlotsAreUsedAgain) {
  GhostRuns ghosts(1'000'000);
  std::mt19937_64 random(1);
  for (uint64_t hash = 1; hash <= 3 * GhostRuns::kMaxGhosts; ++hash) {
    const uint32_t slot = Add(ghosts, hash, 1);
    EXPECT_LT(slot, GhostRuns::kMaxGhosts);
    if (random() % 3 == 0) ghosts.Remove(slot);
  }
  EXPECT_LE(ghosts.count(), GhostRuns::kMaxGhosts);
  EXPECT_GT(ghosts.count(), GhostRuns::kMaxGhosts / 2);
}

TEST(PrefixHashTest, APageIsTakenBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t prefix = random();
    const uint64_t page = random();
    EXPECT_EQ(RemovePageHash(AppendPageHash(prefix, page), page), prefix);
  }
}

TEST(PrefixHashTest, AnyTokenAndItsPlaceMatter) {
  std::vector<Token> page = {1, 2, 3, 4, 5, 6, 7};
  const uint64_t hash = HashOfPage(page);
  for (size_t i = 0; i < page.size(); ++i) {
    ++page[i];
    EXPECT_NE(HashOfPage(page), hash) << i;
    --page[i];
    if (i == 0) continue;
    std::swap(page[i - 1], page[i]);
    EXPECT_NE(HashOfPage(page), hash) << i;
    std::swap(page[i - 1], page[i]);
  }
}

}  // namespace
}  // namespace pando
