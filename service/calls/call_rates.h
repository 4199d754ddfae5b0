#ifndef PANDO_SERVICE_CALLS_CALL_RATES_H_
#define PANDO_SERVICE_CALLS_CALL_RATES_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/variant.h"
#include "base/ids.h"

namespace pando {

// Limits how often each session may call: `calls_per_second` on average, and up
// to a second's worth at once after a pause. Calls that name no open session
// count for their caller. Owned by CallPolicy; used in the turn.
class CallRates {
 public:
  // The one whose calls are counted: a session, or the name of a credential or
  // a connection.
  using Caller = absl::variant<SessionId, std::string>;

  // Zero sets no limit.
  void SetLimit(uint32_t calls_per_second) {
    calls_per_second_ = calls_per_second;
  }

  bool has_limit() const { return calls_per_second_ > 0; }

  // Counts a call. Returns RATE_LIMITED, with the time after which the call may
  // be repeated, if the call exceeds the limit; such a call is not counted.
  absl::Status Admit(const Caller& caller);
  // Forgets the callers whose buckets are full again. To be called
  // periodically.
  void Prune();

 private:
  // A token bucket: a token falls into it every 1 / calls_per_second_ seconds,
  // and it holds the tokens of one second. It is stored as the time at which
  // the token that the next call takes fell into it.
  using Bucket = absl::Time;

  uint32_t calls_per_second_ = 0;
  absl::flat_hash_map<Caller, Bucket> buckets_;  // of those that are not full
};

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_CALL_RATES_H_
