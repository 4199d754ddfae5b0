#include "service/options/option_changes.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/options/option_table.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(OptionChangesTest, TheSameOptionsAreNoChange) {
  const OptionChanges changes = ChangesTo(Options(), Options()).value();
  EXPECT_THAT(changes.live, IsEmpty());
  EXPECT_THAT(changes.need_restart, IsEmpty());
}

TEST(OptionChangesTest, OnlyWhatIsLiveIsTakenOver) {
  Options given;
  given.log_level = "debug";
  given.session_grace = absl::Seconds(7);
  given.layers = 40;
  given.model = "another";
  const OptionChanges changes = ChangesTo(Options(), given).value();
  EXPECT_THAT(changes.live, ElementsAre("session-grace (2s, now 7s)",
                                        "log-level (info, now debug)"));
  EXPECT_THAT(changes.need_restart,
              ElementsAre("layers (32, given 40)", "model (, given another)"));
  EXPECT_EQ(changes.options.log_level, "debug");
  EXPECT_EQ(changes.options.session_grace, absl::Seconds(7));
  EXPECT_EQ(changes.options.layers, 32u);
  EXPECT_EQ(changes.options.model, "");
}

TEST(OptionChangesTest, AnotherWayToSayTheSizeOfThePoolNeedsARestart) {
  Options running;
  running.pool_fraction = 0.5;
  running.pool_pages = 1234;  // the number that the fraction gave
  EXPECT_THAT(ChangesTo(running, running).value().need_restart, IsEmpty());
  EXPECT_THAT(
      ChangesTo(running, Options()).value().need_restart,
      ElementsAre("pool-pages (, given 4096)", "pool-fraction (0.5, given )"));
}

TEST(OptionChangesTest, FloorsAndCapsOfTheSameClassesAreLive) {
  Options running;
  running.quotas = {{.name = "a", .pattern = "a*", .floor_pages = 1},
                    {.name = "b", .pattern = "b*", .cap_pages = 9}};
  Options given = running;
  given.quotas[0].cap_pages = 5;
  given.quotas[1].cap_pages.reset();
  const OptionChanges changes = ChangesTo(running, given).value();
  EXPECT_THAT(changes.live, ElementsAre("quotas"));
  EXPECT_EQ(changes.options.quotas, given.quotas);
}

TEST(OptionChangesTest, OtherClassesNeedARestart) {
  Options running;
  running.quotas = {{.name = "a", .pattern = "a*"}};
  for (const std::vector<QuotaClass>& quotas : {
           std::vector<QuotaClass>{},
           {{.name = "a", .pattern = "b*"}},
           {{.name = "b", .pattern = "a*"}},
           {{.name = "a", .pattern = "a*"}, {.name = "b", .pattern = "b"}},
       }) {
    Options given = running;
    given.quotas = quotas;
    const OptionChanges changes = ChangesTo(running, given).value();
    EXPECT_THAT(changes.live, IsEmpty());
    EXPECT_THAT(changes.need_restart,
                ElementsAre("quotas (other names or patterns)"));
    EXPECT_EQ(changes.options.quotas, running.quotas);
  }
}

TEST(OptionChangesTest, WhatDoesNotFitToTheRunningPoolIsAnError) {
  Options given;
  given.pool_pages = 1'000'000;
  given.low_free_pages = 5'000;
  given.high_free_pages = 5'000;
  EXPECT_EQ(ChangesTo(Options(), given).status().message(),
            "high-free-pages is 5000; must be less than the pages of the pool, "
            "4096");
  given = Options();
  given.pool_pages = 1'000'000;
  given.quotas = {{.name = "a", .pattern = "a", .floor_pages = 5'000}};
  Options running;
  running.quotas = {{.name = "a", .pattern = "a"}};
  EXPECT_FALSE(ChangesTo(running, given).ok());
}

}  // namespace
}  // namespace pando
