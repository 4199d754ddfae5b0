#include "tiers/shared/circuit_breaker.h"

#include <algorithm>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

void FailOften(CircuitBreaker& breaker, absl::Time now) {
  for (int i = 0; i < CircuitBreaker::kFailures; ++i) breaker.Failed(now);
}

TEST(CircuitBreakerTest, AFewFailuresAreNoReason) {
  CircuitBreaker breaker;
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < CircuitBreaker::kFailures; ++i) breaker.Failed(kStart);
    EXPECT_TRUE(breaker.Admits(kStart));
    EXPECT_FALSE(breaker.is_open());
    breaker.Succeeded();
  }
}

TEST(CircuitBreakerTest, RepeatedFailuresRefuseCallsForAWhile) {
  CircuitBreaker breaker;
  FailOften(breaker, kStart);
  const absl::Time end = kStart + CircuitBreaker::kFirstPause;
  EXPECT_FALSE(breaker.Admits(end - absl::Nanoseconds(1)));
  EXPECT_TRUE(breaker.Admits(end));
  EXPECT_TRUE(breaker.is_open());
}

TEST(CircuitBreakerTest, EachFailureAfterThatDoublesTheWhileUpToALimit) {
  CircuitBreaker breaker;
  FailOften(breaker, kStart);
  absl::Duration pause = CircuitBreaker::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    pause = std::min(pause * 2, CircuitBreaker::kLongestPause);
    breaker.Failed(kStart);
    EXPECT_FALSE(breaker.Admits(kStart + pause - absl::Nanoseconds(1)));
    EXPECT_TRUE(breaker.Admits(kStart + pause));
  }
}

TEST(CircuitBreakerTest, ASuccessForgetsAllFailures) {
  CircuitBreaker breaker;
  FailOften(breaker, kStart);
  breaker.Failed(kStart);
  breaker.Succeeded();
  EXPECT_TRUE(breaker.Admits(kStart));
  EXPECT_FALSE(breaker.is_open());
  FailOften(breaker, kStart);
  EXPECT_TRUE(breaker.Admits(kStart + CircuitBreaker::kFirstPause));
}

}  // namespace
}  // namespace pando
