#include "os/logging/log_throttle.h"

#include "gtest/gtest.h"

namespace pando {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

TEST(LogThrottleTest, ManyWithTheSameWordsInOneSecondAreKeptOut) {
  LogThrottle throttle;
  for (uint32_t i = 0; i < LogThrottle::kPerSecond; ++i) {
    EXPECT_EQ(throttle.Admit(LogLevel::kInfo, "a", kNow), 0u);
  }
  EXPECT_EQ(
      throttle.Admit(LogLevel::kInfo, "a", kNow + absl::Milliseconds(999)),
      std::nullopt);
}

TEST(LogThrottleTest, TheNextThatIsLetInTellsHowManyWereNot) {
  LogThrottle throttle;
  for (uint32_t i = 0; i < LogThrottle::kPerSecond + 3; ++i) {
    throttle.Admit(LogLevel::kInfo, "a", kNow);
  }
  EXPECT_EQ(throttle.Admit(LogLevel::kInfo, "a", kNow + absl::Seconds(1)), 3u);
  EXPECT_EQ(throttle.Admit(LogLevel::kInfo, "a", kNow + absl::Seconds(1)), 0u);
}

TEST(LogThrottleTest, WhatWasKeptOutIsToldOnceItsSecondIsOver) {
  LogThrottle throttle;
  for (uint32_t i = 0; i < LogThrottle::kPerSecond + 3; ++i) {
    throttle.Admit(LogLevel::kWarning, "a", kNow);
  }
  throttle.Admit(LogLevel::kInfo, "b", kNow);
  EXPECT_TRUE(throttle.TakeKeptOut(kNow + absl::Milliseconds(999)).empty());
  const auto kept = throttle.TakeKeptOut(kNow + absl::Seconds(1));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].level, LogLevel::kWarning);
  EXPECT_EQ(kept[0].words, "a");
  EXPECT_EQ(kept[0].count, 3u);
  EXPECT_TRUE(throttle.TakeKeptOut(kNow + absl::Seconds(1)).empty());
  EXPECT_EQ(throttle.Admit(LogLevel::kInfo, "a", kNow + absl::Seconds(1)), 0u);
}

TEST(LogThrottleTest, OtherWordsAreCountedApart) {
  LogThrottle throttle;
  for (uint32_t i = 0; i <= LogThrottle::kPerSecond; ++i) {
    throttle.Admit(LogLevel::kInfo, "a", kNow);
  }
  EXPECT_EQ(throttle.Admit(LogLevel::kInfo, "b", kNow), 0u);
}

TEST(LogThrottleTest, AClockThatIsSetBackKeepsNothingOut) {
  LogThrottle throttle;
  for (uint32_t i = 0; i < LogThrottle::kPerSecond; ++i) {
    throttle.Admit(LogLevel::kInfo, "a", kNow);
  }
  EXPECT_EQ(throttle.Admit(LogLevel::kInfo, "a", kNow - absl::Hours(1)), 0u);
}

}  // namespace
}  // namespace pando
