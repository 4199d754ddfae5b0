#include "core/eviction/ghost_list.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

absl::Time At(int seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

TEST(GhostListTest, TellsWhyAndWhenARunWasEvicted) {
  GhostList ghosts;
  ghosts.Add(7, 70, EvictionReason::kQuota, At(1));
  const auto ghost = ghosts.Find(7, 70);
  ASSERT_TRUE(ghost.has_value());
  EXPECT_EQ(ghost->reason, EvictionReason::kQuota);
  EXPECT_EQ(ghost->evicted_at, At(1));
}

TEST(GhostListTest, KnowsARunByPlaceAndFirstPage) {
  GhostList ghosts;
  ghosts.Add(7, 70, EvictionReason::kQuota, At(1));
  EXPECT_FALSE(ghosts.Find(7, 71).has_value());
  EXPECT_FALSE(ghosts.Find(8, 70).has_value());
}

TEST(GhostListTest, ShowsTheNewestOfTheSameRun) {
  GhostList ghosts;
  ghosts.Add(7, 70, EvictionReason::kQuota, At(1));
  ghosts.Add(7, 70, EvictionReason::kFlush, At(2));
  EXPECT_EQ(ghosts.Find(7, 70)->reason, EvictionReason::kFlush);
}

TEST(GhostListTest, ForgetsTheOldestWhenFull) {
  GhostList ghosts;
  for (uint32_t i = 0; i <= GhostList::kMaxGhosts; ++i) {
    ghosts.Add(7, i, EvictionReason::kRequest, At(1));
  }
  EXPECT_FALSE(ghosts.Find(7, 0).has_value());
  EXPECT_TRUE(ghosts.Find(7, 1).has_value());
  EXPECT_TRUE(ghosts.Find(7, GhostList::kMaxGhosts).has_value());
}

TEST(GhostListTest, ARunSeenAgainOutlivesItsOlderRecord) {
  GhostList ghosts;
  ghosts.Add(7, 70, EvictionReason::kQuota, At(1));
  ghosts.Add(7, 70, EvictionReason::kFlush, At(2));
  for (uint32_t i = 0; i < GhostList::kMaxGhosts - 1; ++i) {
    ghosts.Add(8, i, EvictionReason::kRequest, At(3));
  }
  EXPECT_TRUE(ghosts.Find(7, 70).has_value());
  ghosts.Add(9, 9, EvictionReason::kRequest, At(4));
  EXPECT_FALSE(ghosts.Find(7, 70).has_value());
}

TEST(GhostListTest, StartsOfNamespacesAndPagesDiffer) {
  EXPECT_NE(GhostList::StartOf({"a", std::nullopt}),
            GhostList::StartOf({std::nullopt, "a"}));
  EXPECT_EQ(GhostList::StartOf({"a", "b"}), GhostList::StartOf({"a", "b"}));
  EXPECT_EQ(GhostList::Fingerprint(std::vector<Token>{1, 2}),
            GhostList::Fingerprint(std::vector<Token>{1, 2}));
  EXPECT_NE(GhostList::Fingerprint(std::vector<Token>{1, 2}),
            GhostList::Fingerprint(std::vector<Token>{2, 1}));
}

}  // namespace
}  // namespace pando
