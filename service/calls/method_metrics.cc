#include "service/calls/method_metrics.h"

#include <algorithm>

namespace pando {
namespace {

constexpr auto kCodes = std::to_array<absl::StatusCode>(
    {absl::StatusCode::kUnknown, absl::StatusCode::kOk,
     absl::StatusCode::kCancelled, absl::StatusCode::kInvalidArgument,
     absl::StatusCode::kNotFound, absl::StatusCode::kResourceExhausted,
     absl::StatusCode::kFailedPrecondition, absl::StatusCode::kAborted,
     absl::StatusCode::kPermissionDenied, absl::StatusCode::kUnauthenticated,
     absl::StatusCode::kInternal, absl::StatusCode::kUnavailable});
static_assert(kCodes.size() == kRpcCodeNames.size());

// Returns the index of a code in kRpcCodeNames.
size_t IndexOf(absl::StatusCode code) {
  const auto found = std::find(kCodes.begin(), kCodes.end(), code);
  return found == kCodes.end() ? 0
                               : static_cast<size_t>(found - kCodes.begin());
}

// Returns the element that matches, or adds a new one.
template <typename T, typename Is>
T& FindOrAdd(std::deque<T>& all, Is&& is) {
  const auto found = std::find_if(all.begin(), all.end(), is);
  return found != all.end() ? *found : all.emplace_back();
}

}  // namespace

void MethodMetrics::Record(const absl::Status& status, absl::Duration time) {
  calls_->handled[IndexOf(status.code())].fetch_add(1,
                                                    std::memory_order_relaxed);
  method_->seconds.Record(absl::ToDoubleSeconds(time));
}

MethodMetrics RpcMetrics::ForMethod(const std::string& service,
                                    const std::string& method,
                                    const std::string& type,
                                    const std::string& transport) {
  MethodMetrics::Counts& counts =
      FindOrAdd(methods_, [&](const MethodMetrics::Counts& known) {
        return known.service == service && known.name == method;
      });
  counts.service = service;
  counts.name = method;
  counts.type = type;
  MethodMetrics::Calls& calls =
      FindOrAdd(counts.transports, [&](const MethodMetrics::Calls& known) {
        return known.transport == transport;
      });
  calls.transport = transport;
  return MethodMetrics(&counts, &calls);
}

std::vector<MethodFigures> RpcMetrics::Figures() const {
  std::vector<MethodFigures> figures;
  for (const MethodMetrics::Counts& counts : methods_) {
    MethodFigures& method = figures.emplace_back();
    method.service = counts.service;
    method.method = counts.name;
    method.type = counts.type;
    method.seconds = counts.seconds.Copy();
    for (const MethodMetrics::Calls& calls : counts.transports) {
      TransportFigures& figure = method.transports.emplace_back();
      figure.transport = calls.transport;
      figure.started = calls.started.load(std::memory_order_relaxed);
      for (size_t i = 0; i < figure.handled.size(); ++i) {
        figure.handled[i] = calls.handled[i].load(std::memory_order_relaxed);
      }
    }
  }
  return figures;
}

}  // namespace pando
