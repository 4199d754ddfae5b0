#include "service/rpc/method_metrics.h"

#include <algorithm>

namespace pando {
namespace {

constexpr auto kCodes = std::to_array<absl::StatusCode>(
    {absl::StatusCode::kUnknown, absl::StatusCode::kOk,
     absl::StatusCode::kCancelled, absl::StatusCode::kInvalidArgument,
     absl::StatusCode::kNotFound, absl::StatusCode::kResourceExhausted,
     absl::StatusCode::kFailedPrecondition, absl::StatusCode::kAborted,
     absl::StatusCode::kPermissionDenied, absl::StatusCode::kUnauthenticated,
     absl::StatusCode::kUnimplemented, absl::StatusCode::kInternal,
     absl::StatusCode::kUnavailable});
static_assert(kCodes.size() == kRpcCodeNames.size());

// In kRpcCodeNames.
size_t IndexOf(absl::StatusCode code) {
  const auto found = std::find(kCodes.begin(), kCodes.end(), code);
  return found == kCodes.end() ? 0
                               : static_cast<size_t>(found - kCodes.begin());
}

}  // namespace

void MethodMetrics::Record(const absl::Status& status, absl::Duration time) {
  counts_->handled[IndexOf(status.code())].fetch_add(1,
                                                     std::memory_order_relaxed);
  counts_->seconds.Record(absl::ToDoubleSeconds(time));
}

MethodMetrics RpcMetrics::ForMethod(const std::string& service,
                                    const std::string& method,
                                    const std::string& type) {
  MethodMetrics::Counts& counts = methods_.emplace_back();
  counts.labels.service = service;
  counts.labels.method = method;
  counts.labels.type = type;
  return MethodMetrics(&counts);
}

std::vector<MethodFigures> RpcMetrics::Figures() const {
  std::vector<MethodFigures> figures;
  for (const MethodMetrics::Counts& counts : methods_) {
    MethodFigures& method = figures.emplace_back(counts.labels);
    method.started = counts.started.load(std::memory_order_relaxed);
    for (size_t i = 0; i < method.handled.size(); ++i) {
      method.handled[i] = counts.handled[i].load(std::memory_order_relaxed);
    }
    method.seconds = counts.seconds.Copy();
  }
  return figures;
}

}  // namespace pando
