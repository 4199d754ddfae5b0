#include "service/rpc/method_metrics.h"

namespace pando {
namespace {

// In the order of absl::StatusCode, spelled as gRPC middlewares do.
constexpr std::array<const char*, MethodMetrics::kCodes> kCodeNames = {
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated"};

const prometheus::Histogram::BucketBoundaries kSeconds = {
    1e-5,   2.5e-5, 5e-5, 1e-4,   2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
    2.5e-2, 5e-2,   1e-1, 2.5e-1, 5e-1,   1,    2.5,  5,      10};

}  // namespace

RpcMetrics::RpcMetrics(prometheus::Registry& registry)
    : handled_(prometheus::BuildCounter()
                   .Name("grpc_server_handled_total")
                   .Help("RPCs answered by the server, by status code.")
                   .Register(registry)),
      seconds_(prometheus::BuildHistogram()
                   .Name("grpc_server_handling_seconds")
                   .Help("Time in the handler of an RPC; transport and "
                         "(de)serialisation excluded.")
                   .Register(registry)) {}

MethodMetrics RpcMetrics::ForMethod(const std::string& service,
                                    const std::string& method,
                                    const std::string& type) {
  const prometheus::Labels labels = {
      {"grpc_type", type}, {"grpc_service", service}, {"grpc_method", method}};
  std::array<prometheus::Counter*, MethodMetrics::kCodes> handled;
  for (size_t i = 0; i < handled.size(); ++i) {
    prometheus::Labels with_code = labels;
    with_code["grpc_code"] = kCodeNames[i];
    handled[i] = &handled_.Add(with_code);
  }
  return MethodMetrics(handled, &seconds_.Add(labels, kSeconds));
}

}  // namespace pando
