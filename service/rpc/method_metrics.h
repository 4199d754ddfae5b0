#ifndef PANDO_SERVICE_RPC_METHOD_METRICS_H_
#define PANDO_SERVICE_RPC_METHOD_METRICS_H_

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace pando {

// Where one method's calls are counted. A cheap view: copy it. Thread-safe.
class MethodMetrics {
 public:
  static constexpr size_t kCodes = 17;  // of absl::StatusCode

  MethodMetrics(std::array<prometheus::Counter*, kCodes> handled,
                prometheus::Histogram* seconds)
      : handled_(handled), seconds_(seconds) {}

  void Record(const absl::Status& status, absl::Duration time) {
    handled_[static_cast<size_t>(status.code())]->Increment();
    seconds_->Observe(absl::ToDoubleSeconds(time));
  }

 private:
  std::array<prometheus::Counter*, kCodes> handled_;
  prometheus::Histogram* seconds_;
};

// The RPC metrics of all methods, with the names that gRPC middlewares use:
// grpc_server_handled_total and grpc_server_handling_seconds. Owned by Server;
// thread-safe.
class RpcMetrics {
 public:
  // `registry` owns the counters and outlives this.
  explicit RpcMetrics(prometheus::Registry& registry);

  // The metrics of one method of `service` ("pando.v1.PrefixCache"); all codes
  // stand at 0 from then on.
  MethodMetrics ForMethod(const std::string& service, const std::string& method,
                          const std::string& type = "unary");

 private:
  prometheus::Family<prometheus::Counter>& handled_;
  prometheus::Family<prometheus::Histogram>& seconds_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_METHOD_METRICS_H_
