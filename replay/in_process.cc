#include "replay/core_calls.h"
#include "replay/replays.h"

namespace pando::replay {

absl::StatusOr<Report> ReplayInProcess(const Options& options,
                                       const Trace& trace,
                                       const std::string& policy,
                                       uint64_t pool_tokens) {
  const absl::StatusOr<EvictionPolicyKind> kind = ParseEvictionPolicy(policy);
  if (!kind.ok()) return kind.status();
  CoreCalls calls(
      {.page_tokens = options.page_tokens,
       .capacity_pages = static_cast<uint32_t>(options.PoolPages(pool_tokens)),
       .eviction_policy = *kind});
  CopyFloor floor;
  const absl::StatusOr<WorkerResult> result = Serve(
      calls, &floor, trace,
      {.with_output = options.with_output, .use_handles = options.use_handles});
  if (!result.ok()) return result.status();
  Report report;
  report.pool_tokens = pool_tokens;
  AddResults({*result}, &report);
  AddAccounts(Accounts(), calls.TakeAccounts(), &report);
  return report;
}

}  // namespace pando::replay
