#ifndef PANDO_SERVICE_HANDLERS_STEPPED_CALLS_H_
#define PANDO_SERVICE_HANDLERS_STEPPED_CALLS_H_

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/prefix_cache.h"
#include "os/turn_actions.h"
#include "service/handlers/step_time.h"
#include "service/rpc/rpc_server.h"
#include "service/rpc/unary_call.h"

namespace pando {

// Answers calls whose work takes long: it does one step, lets other calls run,
// and then does the next step. A handler that took all steps at once would hold
// up every caller, because handlers run one at a time (see Turn).
//
// Owned by Server; used in the turn. Calls that are under way at the same time
// take their steps in rotation.
class SteppedCalls {
 public:
  enum class Progress {
    kDone,
    kMore,   // there is another step to take
    kWaits,  // there will be another step, once others resume the call
  };

  // The work of one call.
  class Work {
   public:
    virtual ~Work() = default;
    // Does a part of the work that takes a bounded time.
    virtual Progress Step() = 0;
    // Tells the work that the caller is gone: its messages must not be used
    // after this. Returns whether there are steps left that must be taken
    // nevertheless.
    virtual bool Abandon() { return false; }
  };

  // Both pointers outlive this. REQUIRES: `server` has not started.
  SteppedCalls(PrefixCache* cache, RpcServer* server)
      : cache_(cache),
        next_step_(server->AddWakeup([this] { ResumeNext(); })) {}

  // Takes steps of the cache's work for as long as one step of a handler may
  // take (StepTime). Most work is done by then.
  static Progress TakeSteps(PrefixCache& cache, SteppedWork& work) {
    const StepTime time;
    while (!cache.Step(work)) {
      if (time.is_over()) return Progress::kMore;
    }
    return Progress::kDone;
  }

  // A handler returns the result of this; the handler runs again for each step.
  // `begin` makes the work when the call arrives; `finish` fills in the answer
  // when the work is done. Returns none while there is more to do, and
  // CANCELLED if the caller is gone. In that case the steps taken so far are
  // undone only if the work's Abandon does so.
  template <typename W, typename Begin, typename Finish>
  std::optional<absl::Status> Answer(WaitingCall& call, Begin begin,
                                     Finish finish) {
    std::unique_ptr<Work> work = Take(call);
    if (call.is_cancelled()) {
      if (work != nullptr && work->Abandon()) TakeRest(std::move(work));
      return absl::CancelledError("the caller is gone");
    }
    if (work == nullptr) work = begin();
    const Progress progress = work->Step();
    if (progress == Progress::kDone) return finish(static_cast<W&>(*work));
    under_way_[&call] = std::move(work);
    if (progress == Progress::kMore) ResumeSoon(call);
    return std::nullopt;
  }

  // Does the same for SteppedWork of the cache, which `begin` returns.
  template <typename W, typename Begin, typename Finish>
  std::optional<absl::Status> AnswerFromCache(WaitingCall& call, Begin begin,
                                              Finish finish) {
    return Answer<CacheWork<W>>(
        call, [&] { return std::make_unique<CacheWork<W>>(cache_, begin()); },
        [&](CacheWork<W>& done) { return finish(done.work); });
  }

  // Returns whether the call has begun, and waits for its next step.
  bool IsUnderWay(WaitingCall& call) const {
    return under_way_.contains(&call);
  }

 private:
  template <typename W>
  struct CacheWork final : Work {
    CacheWork(PrefixCache* c, W w) : cache(c), work(std::move(w)) {}
    Progress Step() override { return TakeSteps(*cache, work); }
    bool Abandon() override { return work.Abandon(); }

    PrefixCache* const cache;
    W work;
  };

  // Takes the call's work out of under_way_. Returns null if the call has just
  // arrived.
  std::unique_ptr<Work> Take(WaitingCall& call);
  // Has the handler run again after others had the turn.
  void ResumeSoon(WaitingCall& call);
  // Keeps work that no call waits for any more, until its last steps are taken.
  void TakeRest(std::unique_ptr<Work> work);
  void ResumeNext();

  PrefixCache* const cache_;
  Wakeup* const next_step_;
  absl::flat_hash_map<WaitingCall*, std::unique_ptr<Work>> under_way_;
  // The calls in the order of their next steps. A call that is not under way
  // any more is skipped.
  std::deque<WaitingCall*> turns_;
  // Work whose callers are gone. Only one of these takes a step between two
  // steps of calls. So callers who go away again and again leave little work
  // behind, and it holds up no call.
  std::deque<std::unique_ptr<Work>> abandoned_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_STEPPED_CALLS_H_
