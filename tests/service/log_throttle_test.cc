#include "service/logging/log_throttle.h"

#include "gtest/gtest.h"

namespace pando {
namespace {

const absl::Time kNow = absl::UnixEpoch() + absl::Hours(1);

TEST(LogThrottleTest, ManyWithTheSameWordsInOneSecondAreKeptOut) {
  LogThrottle throttle;
  for (uint32_t i = 0; i < LogThrottle::kPerSecond; ++i) {
    EXPECT_EQ(throttle.Admit("a", kNow), 0u);
  }
  EXPECT_EQ(throttle.Admit("a", kNow + absl::Milliseconds(999)), std::nullopt);
}

TEST(LogThrottleTest, TheNextThatIsLetInTellsHowManyWereNot) {
  LogThrottle throttle;
  for (uint32_t i = 0; i < LogThrottle::kPerSecond + 3; ++i) {
    throttle.Admit("a", kNow);
  }
  EXPECT_EQ(throttle.Admit("a", kNow + absl::Seconds(1)), 3u);
  EXPECT_EQ(throttle.Admit("a", kNow + absl::Seconds(1)), 0u);
}

TEST(LogThrottleTest, OtherWordsAreCountedApart) {
  LogThrottle throttle;
  for (uint32_t i = 0; i <= LogThrottle::kPerSecond; ++i) {
    throttle.Admit("a", kNow);
  }
  EXPECT_EQ(throttle.Admit("b", kNow), 0u);
}

TEST(LogThrottleTest, AClockThatIsSetBackKeepsNothingOut) {
  LogThrottle throttle;
  for (uint32_t i = 0; i < LogThrottle::kPerSecond; ++i) {
    throttle.Admit("a", kNow);
  }
  EXPECT_EQ(throttle.Admit("a", kNow - absl::Hours(1)), 0u);
}

}  // namespace
}  // namespace pando
