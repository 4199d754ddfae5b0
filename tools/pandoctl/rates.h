#ifndef PANDO_TOOLS_PANDOCTL_RATES_H_
#define PANDO_TOOLS_PANDOCTL_RATES_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "pando/v1/admin.pb.h"
#include "tools/pandoctl/options.h"
#include "tools/pandoctl/output.h"
#include "tools/pandoctl/server.h"

namespace pando::ctl {

// The differences of two pictures of the cache, per second.
struct Rates {
  double seconds = 0;
  double matches = 0;
  double inserts = 0;
  double evicted_pages = 0;
  // Calls that were refused because the pool or a quota was exhausted.
  double refusals = 0;
  // Tokens that were asked for and found: sums, not rates.
  uint64_t query_tokens = 0;
  uint64_t hit_tokens = 0;
};

// If pandod was started anew meanwhile, the rates count from its start.
Rates RatesBetween(const v1::GetStatsResponse& before,
                   const v1::GetStatsResponse& after, absl::Duration elapsed);

Json ToJson(const Rates& rates);

// Takes a picture after each interval, and calls `show` with it and what
// happened since the one before; options.count times, or without end.
absl::Status Repeat(
    Server& server, const Options& options,
    absl::FunctionRef<absl::Status(const v1::GetStatsResponse&, const Rates&)>
        show);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_RATES_H_
