#ifndef PANDO_SERVICE_HANDLERS_PENDING_MATCHES_H_
#define PANDO_SERVICE_HANDLERS_PENDING_MATCHES_H_

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/prefix_cache.h"
#include "core/requests/requests.h"
#include "os/shared_histogram.h"
#include "pando/v1/prefix_cache.pb.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/unary_call.h"
#include "tiers/prefix_loader.h"

namespace pando {

// The upper bounds of the buckets of waiting times, in seconds.
inline constexpr auto kPendingWaitSeconds =
    std::to_array({1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1,
                   1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0});

// Knows the MatchPrefix calls that wait for a pending page: one that another
// call, of any session, computes or loads. It runs the handler of each call
// again when the wait is over or the time is up. Owned by Server. WaitOver and
// wait_seconds are thread-safe; the other members are used in the turn.
//
// A wait can end in the middle of another handler, on another thread, or even
// before the handler that began it has returned. So ended waits are queued, and
// resumed later on the polling thread, in the order in which they ended.
class PendingMatches {
 public:
  // How a wait ended. `looked_up` is what the call knew when the wait began;
  // its deadline, by MonotonicNow, says until when the call may go on waiting.
  struct Waited {
    v1::PendingOutcome outcome;
    LookedUp looked_up;
    bool is_given_up = false;  // the caller has sent the call again
  };
  // The name that a caller gives to a call.
  using Name = std::pair<SessionId, RequestId>;

  // Both pointers outlive this. REQUIRES: `server` has not started.
  PendingMatches(PrefixCache* cache, RpcServer* server);

  // Reports that a wait is over. The cache calls this (on_wait_over).
  void WaitOver(WaitId wait, PendingOutcome outcome);

  // Begins a wait: the handler of `call` runs again when `wait` has ended, or
  // else at the deadline of `looked_up`.
  void Begin(WaitingCall& call, const Name& name, WaitId wait,
             const LookedUp& looked_up);
  // Ends the wait of `call`. To be called each time the handler of `call` runs
  // again, whatever the reason. Returns none if the call did not wait.
  std::optional<Waited> End(const WaitingCall& call);
  // To be called when the call of this name was sent again without a time to
  // wait. If the first call still waits, its handler runs again as given up,
  // and must answer. In this way a caller can end a wait where it cannot cancel
  // a call.
  void GiveUp(const Name& name);
  // Runs the handlers of all waiting calls again as timed out; they must
  // answer.
  void ResumeAll();

  // Returns how long the calls waited. Thread-safe.
  Histogram<kPendingWaitSeconds> wait_seconds() const {
    return seconds_.Copy();
  }

 private:
  // One wait of one call.
  struct Wait {
    WaitingCall* call = nullptr;
    Name name;
    WaitId id;
    absl::Time began;
    LookedUp looked_up;
    std::optional<PendingOutcome> outcome;  // none until it has ended
    bool is_given_up = false;
  };

  void ResumeEnded();
  void ResumeTimedOut();
  void ResumeWithDeadlineUntil(absl::Time deadline);

  PrefixCache* const cache_;
  Wakeup* const ended_wakeup_;
  // Checks the deadlines. It is off while no call waits.
  Timer* const deadline_timer_;
  SharedHistogram<kPendingWaitSeconds> seconds_;
  absl::flat_hash_map<const WaitingCall*, Wait> by_call_;
  absl::flat_hash_map<WaitId, const WaitingCall*> by_id_;
  // The waiting calls that have a request id. If several have the same name,
  // this is the last one.
  absl::flat_hash_map<Name, const WaitingCall*> by_name_;

  absl::Mutex mutex_;
  std::vector<std::pair<WaitId, PendingOutcome>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_PENDING_MATCHES_H_
