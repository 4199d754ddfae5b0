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

#include "core/histogram.h"
#include "service/metrics/snapshot.h"

namespace pando {

class Samples;

struct MetricLabel {
  std::string name;
  // Which values it has when that is not the same everywhere; empty: those that
  // it has at once, from the start.
  std::string values;
};

// One metric: what it is, and what it is now.
struct Metric {
  using Collect = std::function<void(const MetricsSnapshot&, Samples&)>;

  prometheus::MetricType type;
  std::string name;
  std::string help;
  std::vector<MetricLabel> labels;
  std::span<const double> bounds;  // upper ones of a histogram's buckets
  Collect collect;
};

// The series of one metric, as `collect` adds them: each with a value for every
// label, all that there can ever be (but for workers, who come and go), in the
// same order always. What no reader could see of a value is escaped.
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

// All series of `metric`.
prometheus::MetricFamily CollectMetric(const Metric& metric,
                                       const MetricsSnapshot& snapshot);

// Short forms: metrics without labels, of one number.
using NumberOf = std::function<double(const MetricsSnapshot&)>;
Metric Counter(std::string name, std::string help, NumberOf number);
Metric Gauge(std::string name, std::string help, NumberOf number);
// Metrics with labels.
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
