#include "service/http/text_format.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"

namespace pando {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// A double holds every whole number below this exactly.
constexpr double kWholeLimit = 1e15;

std::string Number(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (std::abs(value) < kWholeLimit && value == std::trunc(value)) {
    return absl::StrCat(static_cast<int64_t>(value));
  }
  char digits[32];
  const std::to_chars_result written = std::to_chars(
      digits, std::end(digits), value, std::chars_format::general);
  return {digits, written.ptr};
}

const char* TypeName(MetricType type) {
  if (type == MetricType::Counter) return "counter";
  if (type == MetricType::Histogram) return "histogram";
  CHECK(type == MetricType::Gauge);
  return "gauge";
}

std::string Labels(const ClientMetric& series) {
  return absl::StrJoin(
      series.label, ",",
      [](std::string* text, const ClientMetric::Label& label) {
        absl::StrAppend(
            text, label.name, "=\"",
            absl::StrReplaceAll(
                label.value, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}}),
            "\"");
      });
}

void AppendValue(const std::string& name, const std::string& labels,
                 const std::string& value, std::string& text) {
  absl::StrAppend(&text, name);
  if (!labels.empty()) absl::StrAppend(&text, "{", labels, "}");
  absl::StrAppend(&text, " ", value, "\n");
}

void AppendHistogram(const std::string& name, const std::string& labels,
                     const ClientMetric::Histogram& histogram,
                     std::string& text) {
  const std::string before_bound = absl::StrCat(
      name, "_bucket{", labels, labels.empty() ? "" : ",", "le=\"");
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    absl::StrAppend(&text, before_bound, Number(bucket.upper_bound), "\"} ",
                    bucket.cumulative_count, "\n");
  }
  AppendValue(name + "_sum", labels, Number(histogram.sample_sum), text);
  AppendValue(name + "_count", labels, absl::StrCat(histogram.sample_count),
              text);
}

void AppendFamily(const MetricFamily& family, std::string& text) {
  absl::StrAppend(
      &text, "# HELP ", family.name, " ",
      absl::StrReplaceAll(family.help, {{"\\", "\\\\"}, {"\n", "\\n"}}),
      "\n# TYPE ", family.name, " ", TypeName(family.type), "\n");
  for (const ClientMetric& series : family.metric) {
    const std::string labels = Labels(series);
    if (family.type == MetricType::Histogram) {
      AppendHistogram(family.name, labels, series.histogram, text);
    } else if (family.type == MetricType::Counter) {
      AppendValue(family.name, labels, Number(series.counter.value), text);
    } else {
      AppendValue(family.name, labels, Number(series.gauge.value), text);
    }
  }
}

}  // namespace

std::string MetricsText(const std::vector<MetricFamily>& families) {
  std::string text;
  for (const MetricFamily& family : families) AppendFamily(family, text);
  return text;
}

}  // namespace pando
