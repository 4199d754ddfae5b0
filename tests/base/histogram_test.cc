#include "base/histogram.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::ElementsAre;

constexpr auto kBounds = std::to_array<double>({1, 2, 5});

TEST(HistogramTest, AValueFallsIntoTheFirstBucketWhoseBoundIsNotBelowIt) {
  Histogram<kBounds> histogram;
  for (const double value : {0.0, 1.0, 1.5, 2.0, 5.0, 5.1, 1e9}) {
    histogram.Record(value);
  }
  EXPECT_THAT(histogram.View().counts, ElementsAre(2, 2, 1, 2));
  EXPECT_THAT(histogram.View().bounds, ElementsAre(1, 2, 5));
}

TEST(HistogramTest, ValuesAreSummed) {
  Histogram<kBounds> histogram;
  histogram.Record(0.5);
  histogram.Record(3, 4);
  EXPECT_EQ(histogram.View().sum, 12.5);
  EXPECT_THAT(histogram.View().counts, ElementsAre(1, 0, 4, 0));
}

TEST(HistogramTest, NewOnesAreEmpty) {
  EXPECT_THAT(Histogram<kBounds>().View().counts, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(Histogram<kBounds>().View().sum, 0);
}

}  // namespace
}  // namespace pando
