#ifndef PANDO_SERVICE_METRICS_CATALOGUE_H_
#define PANDO_SERVICE_METRICS_CATALOGUE_H_

#include <string>
#include <vector>

#include "service/metrics/metric.h"

namespace pando {

struct MetricGroup {
  std::string title;
  std::vector<Metric> metrics;
};

// Every metric of pandod. What /metrics serves and what the documentation says
// both come from here.
const std::vector<MetricGroup>& MetricCatalogue();

// The label of what is told by classes of namespaces.
MetricLabel NamespaceClassLabel();

// The parts of the catalogue, each in a file of its own.
std::vector<Metric> PrefixMetrics();
std::vector<Metric> PoolMetrics();
std::vector<Metric> EvictionMetrics();
std::vector<Metric> LockMetrics();
std::vector<Metric> WorkerMetrics();
std::vector<Metric> PendingMetrics();
std::vector<Metric> KvEventMetrics();
std::vector<Metric> CoreMetrics();
std::vector<Metric> RpcCallMetrics();
std::vector<Metric> ProcessMetrics();

// The catalogue for programs: a JSON list of {group, name, type, help, labels,
// buckets}. A label has the list `values`, or a text `any` that says what they
// are when they differ from server to server.
std::string MetricCatalogueJson();

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_CATALOGUE_H_
