#ifndef PANDO_SERVICE_HTTP_TEXT_FORMAT_H_
#define PANDO_SERVICE_HTTP_TEXT_FORMAT_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace pando {

// Counters, gauges and histograms in the text format of Prometheus. The
// library's own serializer writes the same through streams, which takes most of
// the time of a scrape; that time is taken from those who are served.
std::string MetricsText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_TEXT_FORMAT_H_
