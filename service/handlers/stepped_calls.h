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
// then does the next step. A handler that took all steps at once would hold up
// every caller, because handlers run one at a time (see Turn).
//
// Owned by Server; used in the turn. Steps of several calls take
// turns.
class SteppedCalls {
 public:
  enum class Progress {
    kDone,
    kMore,   // there is another step to take
    kWaits,  // others resume the call, which then takes another step
  };

  // The work of one call.
  class Work {
   public:
    virtual ~Work() = default;
    // Does a bounded part.
    virtual Progress Step() = 0;
    // The caller is gone, and its messages are about to go. Returns whether
    // there are steps to take nevertheless.
    virtual bool Abandon() { return false; }
  };

  // Both outlive this; `server` has not started yet.
  SteppedCalls(PrefixCache* cache, RpcServer* server)
      : cache_(cache),
        next_step_(server->AddWakeup([this] { ResumeNext(); })) {}

  // Takes steps of the cache's work for as long as a step of a handler may
  // take. Most calls are over then.
  static Progress TakeSteps(PrefixCache& cache, SteppedWork& work) {
    const StepTime time;
    while (!cache.Step(work)) {
      if (time.is_over()) return Progress::kMore;
    }
    return Progress::kDone;
  }

  // For a handler, which is run again for each step. `begin` makes the work
  // when the call arrives; `finish` fills in the answer when the work is done.
  // Returns none while there is more to do, and CANCELLED when the caller is
  // gone; the steps taken until then are undone only if the work abandons
  // them.
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

  // The same for SteppedWork of the cache, which `begin` returns.
  template <typename W, typename Begin, typename Finish>
  std::optional<absl::Status> AnswerFromCache(WaitingCall& call, Begin begin,
                                              Finish finish) {
    return Answer<CacheWork<W>>(
        call, [&] { return std::make_unique<CacheWork<W>>(cache_, begin()); },
        [&](CacheWork<W>& done) { return finish(done.work); });
  }

  // Whether the call has begun, and waits for its next step.
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

  // The work that the call has begun; null when it has just arrived.
  std::unique_ptr<Work> Take(WaitingCall& call);
  // Runs the handler again after others had the turn.
  void ResumeSoon(WaitingCall& call);
  // Takes the steps that are left of work that no call waits for.
  void TakeRest(std::unique_ptr<Work> work);
  void ResumeNext();

  PrefixCache* const cache_;
  Wakeup* const next_step_;
  absl::flat_hash_map<WaitingCall*, std::unique_ptr<Work>> under_way_;
  // The calls in the order of their next steps. One that is not under way any
  // more is skipped.
  std::deque<WaitingCall*> turns_;
  // One of these takes turns with the calls, so that callers who go away over
  // and over leave little, and none of them holds up a call.
  std::deque<std::unique_ptr<Work>> abandoned_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_STEPPED_CALLS_H_
