#include "base/status_macros.h"
#include "replay/core_calls.h"
#include "replay/replays.h"

namespace pando::replay {

absl::StatusOr<Report> ReplayInProcess(const Options& options,
                                       const Trace& trace,
                                       const std::string& policy,
                                       uint64_t pool_tokens) {
  ASSIGN_OR_RETURN(const EvictionPolicyKind kind, ParseEvictionPolicy(policy));
  CoreCalls calls(
      {.page_tokens = options.page_tokens,
       .capacity_pages = static_cast<uint32_t>(options.PoolPages(pool_tokens)),
       .eviction_policy = kind});
  CopyFloor floor;
  ASSIGN_OR_RETURN(const WorkerResult result,
                   Serve(calls, &floor, trace,
                         {.with_output = options.with_output,
                          .use_handles = options.use_handles,
                          .tell_ends = options.tell_ends}));
  Report report;
  report.pool_tokens = pool_tokens;
  AddResults({result}, &report);
  AddAccounts(Accounts(), calls.TakeAccounts(), &report);
  return report;
}

}  // namespace pando::replay
