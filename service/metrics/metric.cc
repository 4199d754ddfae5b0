#include "service/metrics/metric.h"

#include <limits>
#include <utility>

#include "base/check.h"
#include "base/visible_text.h"

namespace pando {
namespace {

using prometheus::MetricType;

Metric OneNumber(MetricType type, std::string name, std::string help,
                 NumberOf number) {
  return {.type = type,
          .name = std::move(name),
          .help = std::move(help),
          .labels = {},
          .bounds = {},
          .collect = [number = std::move(number)](
                         const MetricsSnapshot& snapshot, Samples& samples) {
            samples.Add({}, number(snapshot));
          }};
}

}  // namespace

Samples::Samples(const Metric& metric) : metric_(metric) {
  family_.name = metric.name;
  family_.help = metric.help;
  family_.type = metric.type;
}

prometheus::ClientMetric& Samples::NewSeries(
    std::initializer_list<std::string_view> label_values) {
  CHECK(label_values.size() == metric_.labels.size());
  prometheus::ClientMetric& series = family_.metric.emplace_back();
  const MetricLabel* label = metric_.labels.data();
  for (std::string_view value : label_values) {
    series.label.push_back({(label++)->name, VisibleText(value)});
  }
  return series;
}

void Samples::Add(std::initializer_list<std::string_view> label_values,
                  double value) {
  prometheus::ClientMetric& series = NewSeries(label_values);
  if (metric_.type == MetricType::Counter) {
    series.counter.value = value;
  } else {
    series.gauge.value = value;
  }
}

void Samples::Add(std::initializer_list<std::string_view> label_values,
                  const HistogramView& histogram) {
  auto& series = NewSeries(label_values).histogram;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    series.sample_count += histogram.counts[i];
    series.bucket.push_back(
        {.cumulative_count = series.sample_count,
         .upper_bound = i < histogram.bounds.size()
                            ? histogram.bounds[i]
                            : std::numeric_limits<double>::infinity()});
  }
  series.sample_sum = histogram.sum;
}

prometheus::MetricFamily CollectMetric(const Metric& metric,
                                       const MetricsSnapshot& snapshot) {
  Samples samples(metric);
  metric.collect(snapshot, samples);
  return std::move(samples.family());
}

Metric Counter(std::string name, std::string help, NumberOf number) {
  return OneNumber(MetricType::Counter, std::move(name), std::move(help),
                   std::move(number));
}

Metric Gauge(std::string name, std::string help, NumberOf number) {
  return OneNumber(MetricType::Gauge, std::move(name), std::move(help),
                   std::move(number));
}

Metric Counter(std::string name, std::string help,
               std::vector<MetricLabel> labels, Metric::Collect collect) {
  return {MetricType::Counter, std::move(name), std::move(help),
          std::move(labels),   /*bounds=*/{},   std::move(collect)};
}

Metric Gauge(std::string name, std::string help,
             std::vector<MetricLabel> labels, Metric::Collect collect) {
  return {MetricType::Gauge, std::move(name), std::move(help),
          std::move(labels), /*bounds=*/{},   std::move(collect)};
}

Metric HistogramMetric(std::string name, std::string help,
                       std::span<const double> bounds,
                       std::vector<MetricLabel> labels,
                       Metric::Collect collect) {
  return {MetricType::Histogram, std::move(name), std::move(help),
          std::move(labels),     bounds,          std::move(collect)};
}

}  // namespace pando
