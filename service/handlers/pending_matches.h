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

// Upper bounds of buckets, in seconds.
inline constexpr auto kPendingWaitSeconds =
    std::to_array({1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1,
                   1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0});

// The MatchPrefix calls that wait for a page that another call computes. Runs
// the handler of each again when its wait is over or its time is up. Owned by
// Server; WaitOver is thread-safe, all else is for the polling thread.
//
// A wait can end in the middle of another handler, on another thread, or even
// before the handler that began it has returned. So ended waits are queued, and
// resumed later on the polling thread, in the order in which they ended.
class PendingMatches {
 public:
  // How a wait ended, and what the call knew when it began, with the time until
  // when it may go on waiting, by MonotonicNow.
  struct Waited {
    v1::PendingOutcome outcome;
    LookedUp looked_up;
    bool is_given_up = false;  // nobody wants the answer
  };
  // What a caller names a call by.
  using Name = std::pair<SessionId, RequestId>;

  // All outlive this; `server` has not started yet.
  PendingMatches(PrefixCache* cache, RpcServer* server);

  // The cache's on_wait_over calls this.
  void WaitOver(WaitId wait, PendingOutcome outcome);

  // Runs the handler of `call` again when `wait` has ended, at the latest at
  // the deadline.
  void Begin(WaitingCall& call, const Name& name, WaitId wait,
             const LookedUp& looked_up);
  // To be called when the handler of `call` runs again, whatever the reason:
  // the call waits no more. Returns none if it did not wait.
  std::optional<Waited> End(const WaitingCall& call);
  // The call of this name was sent again, and does not wait now: one that still
  // does is run again as given up, and must answer. So a caller ends a wait
  // wherever it cannot cancel a call.
  void GiveUp(const Name& name);
  // Runs the handlers of all waiting calls again; they must answer.
  void ResumeAll();

  // How long the calls waited. Thread-safe.
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
  // Its period is set while a call waits.
  Timer* const deadline_timer_;
  SharedHistogram<kPendingWaitSeconds> seconds_;
  absl::flat_hash_map<const WaitingCall*, Wait> by_call_;
  absl::flat_hash_map<WaitId, const WaitingCall*> by_id_;
  // Those that have a request id; the last one where several have the same.
  absl::flat_hash_map<Name, const WaitingCall*> by_name_;

  absl::Mutex mutex_;
  std::vector<std::pair<WaitId, PendingOutcome>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_PENDING_MATCHES_H_
