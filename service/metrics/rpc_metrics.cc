// Calls, with the names that gRPC middlewares use.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

const std::vector<MetricLabel> kMethod = {
    {"grpc_type", "`unary`, `server_stream` or `bidi_stream`"},
    {"grpc_service", "the service, `pando.v1.PrefixCache` for example"},
    {"grpc_method", "the method"}};

std::vector<MetricLabel> MethodAndCode() {
  std::vector<MetricLabel> labels = kMethod;
  std::string names;
  for (std::string_view name : kRpcCodeNames) {
    names.append(names.empty() ? "`" : ", `").append(name).append("`");
  }
  labels.push_back({"grpc_code", names});
  return labels;
}

}  // namespace

std::vector<Metric> RpcCallMetrics() {
  return {
      Counter("grpc_server_started_total",
              "Calls that arrived; less those handled, it is the calls that "
              "run or wait.",
              kMethod,
              [](const Snapshot& s, Samples& out) {
                for (const MethodFigures& m : s.methods) {
                  out.Add({m.type, m.service, m.method},
                          static_cast<double>(m.started));
                }
              }),
      Counter("grpc_server_handled_total", "Calls answered, by status code.",
              MethodAndCode(),
              [](const Snapshot& s, Samples& out) {
                for (const MethodFigures& m : s.methods) {
                  for (size_t i = 0; i < m.handled.size(); ++i) {
                    out.Add({m.type, m.service, m.method, kRpcCodeNames[i]},
                            static_cast<double>(m.handled[i]));
                  }
                }
              }),
      Counter("pando_refused_connections_total",
              "Connections to the Unix sockets that were refused because of "
              "their user.",
              [](const Snapshot& s) { return s.refused_connections; }),
      HistogramMetric(
          "grpc_server_handling_seconds",
          "Time in the handler of a call, without transport, "
          "(de)serialisation and the time that a match waits; of a "
          "stream: how long it lived.",
          kRpcSeconds, kMethod,
          [](const Snapshot& s, Samples& out) {
            for (const MethodFigures& m : s.methods) {
              out.Add({m.type, m.service, m.method}, m.seconds.View());
            }
          }),
  };
}

}  // namespace pando
