#include "service/metrics/catalogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pando {
namespace {

using Json = nlohmann::ordered_json;

std::string TypeName(prometheus::MetricType type) {
  switch (type) {
    case prometheus::MetricType::Counter:
      return "counter";
    case prometheus::MetricType::Histogram:
      return "histogram";
    default:
      return "gauge";
  }
}

// Returns the snapshot of a server that has just started, learns reuse and has
// a tier.
MetricsSnapshot Specimen() {
  MetricsSnapshot snapshot;
  snapshot.cache.reuse.emplace();
  snapshot.disk_tier.capacity_pages = 1;
  return snapshot;
}

// Returns the values that a label has in the specimen.
std::vector<std::string> ValuesOf(const prometheus::MetricFamily& family,
                                  size_t label) {
  std::vector<std::string> values;
  for (const prometheus::ClientMetric& series : family.metric) {
    const std::string& value = series.label[label].value;
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      values.push_back(value);
    }
  }
  return values;
}

Json ToJson(const std::string& group, const Metric& metric) {
  const prometheus::MetricFamily family = CollectMetric(metric, Specimen());
  Json labels = Json::array();
  for (size_t i = 0; i < metric.labels.size(); ++i) {
    Json label = {{"name", metric.labels[i].name}};
    if (metric.labels[i].values.empty()) {
      label["values"] = ValuesOf(family, i);
    } else {
      label["any"] = metric.labels[i].values;
    }
    labels.push_back(std::move(label));
  }
  return {{"group", group},
          {"name", metric.name},
          {"type", TypeName(metric.type)},
          {"help", metric.help},
          {"labels", std::move(labels)},
          {"buckets",
           std::vector<double>(metric.bounds.begin(), metric.bounds.end())}};
}

}  // namespace

const std::vector<MetricGroup>& MetricCatalogue() {
  static const auto* const catalogue = new std::vector<MetricGroup>{
      {"Prefix cache", PrefixMetrics()},
      {"Pool", PoolMetrics()},
      {"Blocks", BlockMetrics()},
      {"Eviction", EvictionMetrics()},
      {"Locks and sessions", LockMetrics()},
      {"Workers", WorkerMetrics()},
      {"Single flight", PendingMetrics()},
      {"Tiers", TierMetrics()},
      {"Events for routers", KvEventMetrics()},
      {"Core", CoreMetrics()},
      {"RPC", RpcCallMetrics()},
      {"Process", ProcessMetrics()},
  };
  return *catalogue;
}

MetricLabel NamespaceClassLabel() {
  return {"ns_class", "the configured quota classes, at most 8, and `other`"};
}

std::string MetricCatalogueJson() {
  Json list = Json::array();
  for (const MetricGroup& group : MetricCatalogue()) {
    for (const Metric& metric : group.metrics) {
      list.push_back(ToJson(group.title, metric));
    }
  }
  return list.dump(2) + "\n";
}

}  // namespace pando
