// The metrics of the time that the cache's index takes.

#include <utility>

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

constexpr std::pair<Operation, std::string_view> kOperationNames[] = {
    {Operation::kMatch, "match"},   {Operation::kScore, "score"},
    {Operation::kInsert, "insert"}, {Operation::kLock, "lock"},
    {Operation::kUnlock, "unlock"}, {Operation::kAllocate, "allocate"},
    {Operation::kFree, "free"},     {Operation::kEvict, "evict"},
};
static_assert(std::size(kOperationNames) == kOperations);

}  // namespace

std::vector<Metric> CoreMetrics() {
  return {
      HistogramMetric(
          "pando_core_op_duration_seconds",
          "Time in the index of one operation, the wait for its lock included; "
          "evict is a step of an Evict call.",
          kOperationSeconds, {{"op", ""}},
          [](const Snapshot& s, Samples& out) {
            for (const auto& [operation, name] : kOperationNames) {
              out.Add({name},
                      s.cache.measured.operation_seconds[operation].View());
            }
          }),
      HistogramMetric("pando_core_lock_wait_seconds",
                      "Of each of those operations: its wait for the index's "
                      "lock; 0 when it was free.",
                      kOperationSeconds, {},
                      [](const Snapshot& s, Samples& out) {
                        out.Add({}, s.cache.measured.lock_wait_seconds.View());
                      }),
      Counter("pando_invariant_violations_total",
              "Violations that the self-check found; must stay 0.",
              [](const Snapshot& s) { return s.invariant_violations; }),
  };
}

}  // namespace pando
