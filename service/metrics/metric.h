#ifndef PANDO_SERVICE_METRICS_METRIC_H_
#define PANDO_SERVICE_METRICS_METRIC_H_

#include <prometheus/metric_family.h>
#include <prometheus/metric_type.h>

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/histogram.h"
#include "service/metrics/snapshot.h"

namespace pando {

class Samples;

// A label of a metric: its name, and which values it has.
struct MetricLabel {
  std::string name;
  // Describes the values, if they differ from server to server. It is empty if
  // all values have a series from the start.
  std::string values;
};

// One metric: its description, and the function that reads its present value.
struct Metric {
  using Collect = std::function<void(const MetricsSnapshot&, Samples&)>;

  prometheus::MetricType type;
  std::string name;
  std::string help;
  std::vector<MetricLabel> labels;
  std::span<const double> bounds;  // upper bounds of a histogram's buckets
  Collect collect;
};

// The series of one metric. Metric::collect adds them, each with a value for
// every label. It must always add all series that the metric can have, in the
// same order; only those of workers, of learnt reuse and of a shared store may
// come and go. Invisible characters in label values are escaped.
class Samples {
 public:
  explicit Samples(const Metric& metric);

  void Add(std::initializer_list<std::string_view> label_values, double value);
  void Add(std::initializer_list<std::string_view> label_values,
           const HistogramView& histogram);

  prometheus::MetricFamily& family() { return family_; }

 private:
  prometheus::ClientMetric& NewSeries(
      std::initializer_list<std::string_view> label_values);

  const Metric& metric_;
  prometheus::MetricFamily family_;
};

// Returns all series of `metric`.
prometheus::MetricFamily CollectMetric(const Metric& metric,
                                       const MetricsSnapshot& snapshot);

// Make metrics with one number and no labels.
using NumberOf = std::function<double(const MetricsSnapshot&)>;
Metric Counter(std::string name, std::string help, NumberOf number);
Metric Gauge(std::string name, std::string help, NumberOf number);
// Make metrics with labels.
Metric Counter(std::string name, std::string help,
               std::vector<MetricLabel> labels, Metric::Collect collect);
Metric Gauge(std::string name, std::string help,
             std::vector<MetricLabel> labels, Metric::Collect collect);
Metric HistogramMetric(std::string name, std::string help,
                       std::span<const double> bounds,
                       std::vector<MetricLabel> labels,
                       Metric::Collect collect);

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_METRIC_H_
