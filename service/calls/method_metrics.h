#ifndef PANDO_SERVICE_CALLS_METHOD_METRICS_H_
#define PANDO_SERVICE_CALLS_METHOD_METRICS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "os/shared_histogram.h"

namespace pando {

// The upper bounds of the buckets of handler times, in seconds.
inline constexpr auto kRpcSeconds = std::to_array(
    {1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2,
     5e-2, 1e-1, 2.5e-1, 5e-1, 1.0, 2.5, 5.0, 10.0});

// The status codes that calls are answered with, spelled as gRPC middlewares
// spell them. The first one, "Unknown", also counts all codes that are not
// listed.
inline constexpr auto kRpcCodeNames = std::to_array<std::string_view>(
    {"Unknown", "OK", "Canceled", "InvalidArgument", "NotFound",
     "ResourceExhausted", "FailedPrecondition", "Aborted", "PermissionDenied",
     "Unauthenticated", "Internal", "Unavailable"});

// The counts of one method's calls on one transport.
struct TransportFigures {
  std::string transport;  // "grpc" or "lane"
  uint64_t started = 0;
  std::array<uint64_t, kRpcCodeNames.size()> handled{};
};

// The counts of one method.
struct MethodFigures {
  std::string service;  // "pando.v1.PrefixCache"
  std::string method;
  std::string type;  // "unary" and so on
  std::vector<TransportFigures> transports;
  Histogram<kRpcSeconds> seconds;  // in the handler, of all transports
};

// Counts the calls of one method on one transport, without a lock. This is a
// small view of counts that RpcMetrics owns, so copy it freely. Thread-safe.
class MethodMetrics {
 public:
  // A call has arrived.
  void Start() { calls_->started.fetch_add(1, std::memory_order_relaxed); }
  // A call was answered; `time` was spent in its handler.
  void Record(const absl::Status& status, absl::Duration time);

  const std::string& service() const { return method_->service; }
  const std::string& method() const { return method_->name; }

 private:
  friend class RpcMetrics;
  struct Calls {
    std::string transport;
    std::atomic<uint64_t> started = 0;
    std::array<std::atomic<uint64_t>, kRpcCodeNames.size()> handled{};
  };
  struct Counts {
    std::string service;
    std::string name;
    std::string type;
    std::deque<Calls> transports;
    SharedHistogram<kRpcSeconds> seconds;
  };

  MethodMetrics(Counts* method, Calls* calls)
      : method_(method), calls_(calls) {}

  Counts* method_;
  Calls* calls_;
};

// Counts the calls of all methods. Owned by Server. Call ForMethod only before
// the server starts; the other members are thread-safe.
class RpcMetrics {
 public:
  // Returns a view of the counts for these names. The same names always give
  // the same counts.
  MethodMetrics ForMethod(const std::string& service, const std::string& method,
                          const std::string& type = "unary",
                          const std::string& transport = "grpc");

  // Returns the counts of all methods, in the order of their first ForMethod.
  std::vector<MethodFigures> Figures() const;

 private:
  std::deque<MethodMetrics::Counts> methods_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_METHOD_METRICS_H_
