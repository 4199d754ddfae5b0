#include "service/calls/call_rates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/requests/errors.h"
#include "os/monotonic_clock.h"
#include "service/calls/status_message.h"

namespace pando {
namespace {

constexpr absl::Duration kFullAfter = absl::Seconds(1);

}  // namespace

absl::Status CallRates::Admit(const Caller& caller) {
  if (!has_limit()) return absl::OkStatus();
  const absl::Time now = MonotonicNow();
  const absl::Duration step = absl::Seconds(1) / calls_per_second_;
  Bucket& bucket = buckets_[caller];
  bucket = std::max(bucket, now - (kFullAfter - step));
  if (bucket > now) {
    return WithRetryAfter(
        MakeError(Reason::kRateLimited,
                  absl::StrCat(absl::holds_alternative<SessionId>(caller)
                                   ? "the session"
                                   : "the caller, without an open session,",
                               " makes more calls than max-calls-per-second, "
                               "which is ",
                               calls_per_second_)),
        bucket - now);
  }
  bucket += step;
  return absl::OkStatus();
}

void CallRates::Prune() {
  const absl::Time full = MonotonicNow() - kFullAfter;
  absl::erase_if(buckets_,
                 [full](const auto& entry) { return entry.second <= full; });
}

}  // namespace pando
