#include "service/http/text_format.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily GaugeOf(double value) {
  MetricFamily family{"g", "Help.", MetricType::Gauge, {}};
  family.metric.emplace_back().gauge.value = value;
  return family;
}

// Returns how a metric with this value is written.
std::string Written(double value) {
  const std::string text = MetricsText({GaugeOf(value)});
  const size_t begin = text.rfind(' ') + 1;
  return text.substr(begin, text.size() - begin - 1);
}

TEST(TextFormatTest, ACounterHasHelpTypeAndItsLabels) {
  MetricFamily family{"c_total", "Of all.", MetricType::Counter, {}};
  ClientMetric& series = family.metric.emplace_back();
  series.label = {{"kind", "a"}, {"reason", "b"}};
  series.counter.value = 7;
  EXPECT_EQ(MetricsText({family}),
            "# HELP c_total Of all.\n"
            "# TYPE c_total counter\n"
            "c_total{kind=\"a\",reason=\"b\"} 7\n");
}

TEST(TextFormatTest, AHistogramHasBucketsSumAndCount) {
  MetricFamily family{"h", "Help.", MetricType::Histogram, {}};
  ClientMetric series;
  series.histogram = {
      .sample_count = 3,
      .sample_sum = 2.5,
      .bucket = {{.cumulative_count = 1, .upper_bound = 0.1},
                 {.cumulative_count = 3,
                  .upper_bound = std::numeric_limits<double>::infinity()}}};
  family.metric.push_back(series);
  series.label = {{"op", "match"}};
  family.metric.push_back(series);
  EXPECT_EQ(MetricsText({family}),
            "# HELP h Help.\n"
            "# TYPE h histogram\n"
            "h_bucket{le=\"0.1\"} 1\n"
            "h_bucket{le=\"+Inf\"} 3\n"
            "h_sum 2.5\n"
            "h_count 3\n"
            "h_bucket{op=\"match\",le=\"0.1\"} 1\n"
            "h_bucket{op=\"match\",le=\"+Inf\"} 3\n"
            "h_sum{op=\"match\"} 2.5\n"
            "h_count{op=\"match\"} 3\n");
}

TEST(TextFormatTest, FamiliesFollowEachOther) {
  EXPECT_EQ(MetricsText({GaugeOf(1), GaugeOf(2)}),
            "# HELP g Help.\n# TYPE g gauge\ng 1\n"
            "# HELP g Help.\n# TYPE g gauge\ng 2\n");
  EXPECT_EQ(MetricsText({}), "");
}

TEST(TextFormatTest, WhatHasAMeaningInTheFormatIsEscaped) {
  MetricFamily family{
      "g", "back\\slash, \"quotes\"\nand lines", MetricType::Gauge, {}};
  family.metric.emplace_back().label = {{"model", "a\\b\"c\nd"}};
  EXPECT_EQ(MetricsText({family}),
            "# HELP g back\\\\slash, \"quotes\"\\nand lines\n"
            "# TYPE g gauge\n"
            "g{model=\"a\\\\b\\\"c\\nd\"} 0\n");
}

TEST(TextFormatTest, NumbersAreExactAndShort) {
  const std::vector<std::pair<double, std::string>> numbers = {
      {0, "0"},
      {-3, "-3"},
      {100'000, "100000"},
      {137'438'953'472, "137438953472"},
      {1e15, "1e+15"},
      {0.1, "0.1"},
      {1e-6, "1e-06"},
      {1700000000.25, "1.70000000025e+09"},
      {1.0 / 3, "0.3333333333333333"},
      {std::numeric_limits<double>::infinity(), "+Inf"},
      {-std::numeric_limits<double>::infinity(), "-Inf"},
      {std::numeric_limits<double>::quiet_NaN(), "nan"},
  };
  for (const auto& [number, text] : numbers) EXPECT_EQ(Written(number), text);
}

}  // namespace
}  // namespace pando
