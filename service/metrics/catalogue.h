#ifndef PANDO_SERVICE_METRICS_CATALOGUE_H_
#define PANDO_SERVICE_METRICS_CATALOGUE_H_

#include <string>
#include <vector>

#include "service/metrics/metric.h"

namespace pando {

// A group of metrics, with its title in the documentation.
struct MetricGroup {
  std::string title;
  std::vector<Metric> metrics;
};

// Returns every metric of pandod. Both /metrics and docs/metrics.md are made
// from this list.
const std::vector<MetricGroup>& MetricCatalogue();

// Returns the label of metrics that have a series for each quota class.
MetricLabel NamespaceClassLabel();

// The parts of the catalogue, each in a file of its own. Only MetricCatalogue
// calls them.
std::vector<Metric> PrefixMetrics();
std::vector<Metric> PoolMetrics();
std::vector<Metric> BlockMetrics();
std::vector<Metric> EvictionMetrics();
std::vector<Metric> LockMetrics();
std::vector<Metric> WorkerMetrics();
std::vector<Metric> PendingMetrics();
std::vector<Metric> TierMetrics();
std::vector<Metric> KvEventMetrics();
std::vector<Metric> CoreMetrics();
std::vector<Metric> RpcCallMetrics();
std::vector<Metric> ProcessMetrics();

// Returns the catalogue for programs: a JSON list of {group, name, type, help,
// labels, buckets}. A label has the list `values`, or, if they differ from
// server to server, a text `any` that describes them.
std::string MetricCatalogueJson();

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_CATALOGUE_H_
