// Tests of the numbers of reuse classes and age bins.

#include "core/reuse/reuse_class.h"

#include <cmath>
#include <set>

#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(ReuseClassTest, ANumberTellsAllLevels) {
  std::set<uint32_t> numbers;
  for (uint32_t uses = 0; uses < 8; ++uses) {
    for (uint32_t interval = 0; interval < 8; ++interval) {
      for (uint32_t output = 0; output < 4; ++output) {
        for (uint32_t new_tokens = 0; new_tokens < 8; ++new_tokens) {
          const ReuseClass of{uses, interval, output, new_tokens};
          EXPECT_LT(of.number(), kReuseClasses);
          EXPECT_EQ(ReuseClass::FromNumber(of.number()), of);
          numbers.insert(of.number());
        }
      }
    }
  }
  EXPECT_EQ(numbers.size(), kReuseClasses);
}

TEST(ReuseClassTest, ManyUsesAreAlike) {
  EXPECT_EQ(UsesLevel(1), 0u);
  EXPECT_EQ(UsesLevel(3), 2u);
  EXPECT_EQ(UsesLevel(4), UsesLevel(5));
  EXPECT_LT(UsesLevel(16), UsesLevel(17));
  EXPECT_EQ(UsesLevel(65), 7u);
  EXPECT_EQ(UsesLevel(255), 7u);
}

TEST(ReuseClassTest, AnIntervalLevelIsOneAndAHalfOctaves) {
  for (uint32_t age = 0; age < 3000; ++age) {
    const double octaves = std::log2(age + 1.0);
    EXPECT_EQ(IntervalLevel(age),
              1 + std::min(6, static_cast<int>(octaves / 1.5)))
        << age;
  }
}

TEST(ReuseClassTest, TokensCountInOctavesFrom512On) {
  EXPECT_EQ(NewTokensLevel(0), 0u);
  EXPECT_EQ(NewTokensLevel(511), 0u);
  EXPECT_EQ(NewTokensLevel(512), 1u);
  EXPECT_EQ(NewTokensLevel(1023), 1u);
  EXPECT_EQ(NewTokensLevel(32'768), 7u);
  EXPECT_EQ(NewTokensLevel(1'000'000), 7u);
  EXPECT_EQ(OutputLevel(63), 0u);
  EXPECT_EQ(OutputLevel(64), 1u);
  EXPECT_EQ(OutputLevel(5000), 3u);
}

TEST(ReuseClassTest, BinsOfAgeGrowByTheSquareRootOfTwo) {
  EXPECT_EQ(FirstAge(0), 0u);
  EXPECT_EQ(FirstAge(1), 1u);
  EXPECT_EQ(FirstAge(5), 4u);
  for (uint32_t bin = 1; bin < kAgeBins; ++bin) {
    EXPECT_GE(FirstAge(bin), AgeBound(bin));
    EXPECT_LT(FirstAge(bin) - 1, AgeBound(bin));
    EXPECT_NEAR(AgeBound(bin + 1) / AgeBound(bin), std::sqrt(2), 1e-9);
  }
}

}  // namespace
}  // namespace pando
