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
#include "core/requests.h"
#include "pando/v1/prefix_cache.pb.h"
#include "service/process/shared_histogram.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/unary_call.h"

namespace pando {

// Upper bounds of buckets, in seconds.
inline constexpr auto kPendingWaitSeconds =
    std::to_array({1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1,
                   1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0});

// The MatchPrefix calls that wait for a page that another call computes. Runs
// the handler of each again when its wait is over or its time is up. Owned by
// Server; WaitOver is thread-safe, all else is for the polling thread.
//
// Waits can be over in the middle of another handler or on another thread. So
// they are queued and looked at later, on the polling thread, in the order in
// which they were over: by then each is known here, even if it was over before
// the handler that began it had returned.
class PendingMatches {
 public:
  // How a wait ended, and until when the call may go on waiting, by
  // MonotonicNow.
  struct Waited {
    v1::PendingOutcome outcome;
    absl::Time deadline;
  };

  // All outlive this; `server` has not started yet.
  PendingMatches(PrefixCache* cache, RpcServer* server);

  // What the cache's on_wait_over calls.
  void WaitOver(WaitId wait, PendingOutcome outcome);

  // `call`, whose match was told to wait, is run again when `wait` is over, at
  // the latest at `deadline`.
  void Begin(WaitingCall& call, WaitId wait, absl::Time deadline);
  // The handler of `call` runs: whatever the reason, it waits no more. None if
  // it did not wait.
  std::optional<Waited> End(const WaitingCall& call);
  // Runs the handlers of all calls again, which must answer.
  void ResumeAll();

  // How long the calls waited. Thread-safe.
  Histogram<kPendingWaitSeconds> wait_seconds() const {
    return seconds_.Copy();
  }

 private:
  // One wait of one call.
  struct Wait {
    WaitingCall* call = nullptr;
    WaitId id;
    absl::Time began;
    absl::Time deadline;
    std::optional<PendingOutcome> outcome;  // none while it is not over
  };

  void ResumeOver();
  void ResumeLate();
  void ResumeThoseUntil(absl::Time deadline);

  PrefixCache* const cache_;
  Wakeup* const some_are_over_;
  // Runs while somebody waits.
  Timer* const look_for_late_;
  SharedHistogram<kPendingWaitSeconds> seconds_;
  absl::flat_hash_map<const WaitingCall*, Wait> by_call_;
  absl::flat_hash_map<WaitId, const WaitingCall*> by_id_;

  absl::Mutex mutex_;
  std::vector<std::pair<WaitId, PendingOutcome>> over_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_PENDING_MATCHES_H_
