#ifndef PANDO_SERVICE_HTTP_TEXT_FORMAT_H_
#define PANDO_SERVICE_HTTP_TEXT_FORMAT_H_

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace pando {

// Writes counters, gauges and histograms in the text format of Prometheus. The
// library's own serializer writes the same through streams, which would take
// most of the time of a scrape, on the CPUs that serve calls.
std::string MetricsText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace pando

#endif  // PANDO_SERVICE_HTTP_TEXT_FORMAT_H_
