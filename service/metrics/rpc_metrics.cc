// The metrics of calls, with the names that gRPC middlewares use.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

const std::vector<MetricLabel> kMethod = {
    {"grpc_type", "`unary`, `server_stream` or `bidi_stream`"},
    {"grpc_service", "the service, `pando.v1.PrefixCache` for example"},
    {"grpc_method", "the method"}};

std::vector<MetricLabel> MethodAndTransport() {
  std::vector<MetricLabel> labels = kMethod;
  labels.push_back({"transport", "`grpc` or `lane`"});
  return labels;
}

std::vector<MetricLabel> MethodTransportAndCode() {
  std::vector<MetricLabel> labels = MethodAndTransport();
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
              "run or wait. Those of a batch count as well.",
              MethodAndTransport(),
              [](const Snapshot& s, Samples& out) {
                for (const MethodFigures& m : s.methods) {
                  for (const TransportFigures& t : m.transports) {
                    out.Add({m.type, m.service, m.method, t.transport},
                            static_cast<double>(t.started));
                  }
                }
              }),
      Counter("grpc_server_handled_total", "Calls answered, by status code.",
              MethodTransportAndCode(),
              [](const Snapshot& s, Samples& out) {
                for (const MethodFigures& m : s.methods) {
                  for (const TransportFigures& t : m.transports) {
                    for (size_t i = 0; i < t.handled.size(); ++i) {
                      out.Add({m.type, m.service, m.method, t.transport,
                               kRpcCodeNames[i]},
                              static_cast<double>(t.handled[i]));
                    }
                  }
                }
              }),
      Gauge("pando_lanes", "Lanes that are open now.",
            [](const Snapshot& s) { return s.lanes.open; }),
      Counter("pando_lane_spins_total",
              "Times that the thread of lanes looked for the next call for a "
              "while instead of sleeping: a call came, or none within "
              "--lane-spin. It does so only after a call from another CPU.",
              {{"outcome", ""}},
              [](const Snapshot& s, Samples& out) {
                const auto add = [&](const char* outcome, uint64_t count) {
                  out.Add({outcome}, static_cast<double>(count));
                };
                add("call", s.lanes.spins_with_call);
                add("none", s.lanes.spins_without_call);
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
