#ifndef PANDO_SERVICE_HANDLERS_MATCH_CALL_H_
#define PANDO_SERVICE_HANDLERS_MATCH_CALL_H_

#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/match/matching.h"
#include "core/prefix_cache.h"
#include "pando/v1/prefix_cache.pb.h"
#include "service/calls/waiting_call.h"
#include "service/handlers/pending_matches.h"
#include "service/handlers/stepped_calls.h"
#include "service/memory/page_verifier.h"
#include "tiers/prefix_loader.h"

namespace pando {

// One MatchPrefix, from one wait to the next. The call may wait twice, and its
// handler is run again each time:
//
//   kArrived ----> kLookedUp ----> kWaited, kTimedOut ----> answered
//     until it is known      until the page after
//     what is kept of        the match is published,
//     the prompt             or not
//
// A call that needs neither goes from kArrived to its answer. A wait that ended
// may be followed by another for the next page. PrefixLoader and PendingMatches
// know the calls that wait; this is made anew when one ends, and is kept by
// SteppedCalls while the match takes its steps.
//
// Used in the turn.
class MatchCall final : public SteppedCalls::Work {
 public:
  // What it stands on; all outlive it.
  struct Parts {
    PrefixCache* cache;
    PendingMatches* pending;
    PrefixLoader* loader;    // null: what is evicted is lost
    PageVerifier* verifier;  // null: no pages are verified
    uint32_t max_tokens;
    uint64_t epoch;
  };

  MatchCall(const Parts& parts, const v1::MatchPrefixRequest& request,
            v1::MatchPrefixResponse& response, WaitingCall& call)
      : parts_(parts), request_(request), response_(response), call_(call) {}

  // Finds out in which state the call is, and prepares the match. Returns false
  // when the call waits until its prompt has been looked up.
  absl::StatusOr<bool> Begin();
  // Takes steps of the match. REQUIRES: Begin has returned true.
  SteppedCalls::Progress Step() override {
    return SteppedCalls::TakeSteps(*parts_.cache, *match_);
  }
  // Uses neither the messages nor the call from now on.
  bool Abandon() override { return match_->Abandon(); }
  // After the last step. Returns none when the call waits for a page.
  std::optional<absl::Status> End();

 private:
  enum class State {
    kArrived,
    kLookedUp,  // `known_` says what is kept
    kWaited,    // the page is published or loaded, or its owner has left
    kTimedOut,  // the call may not wait any more
    kGivenUp,   // the caller has sent the call again and wants no answer
  };

  bool waits() const { return request_.pending_wait_ms() > 0; }
  void TakeUp();
  // Converts the request.
  absl::Status Read();
  // Asks the loader, if the request wants that. Returns whether the call waits
  // until it knows.
  absl::StatusOr<bool> LookUp();
  // The same, once it is known that the loader is to be asked.
  absl::StatusOr<bool> BeginLookUp();
  MatchRequest Match() const;
  // Lets the call wait for a pending page.
  std::optional<absl::Status> Wait(WaitId wait);
  void Verify(const MatchResult& result);
  void Answer(const MatchResult& result);

  const Parts parts_;
  const v1::MatchPrefixRequest& request_;
  v1::MatchPrefixResponse& response_;
  WaitingCall& call_;

  State state_ = State::kArrived;
  // How the last wait ended; none: the call has not waited.
  std::optional<v1::PendingOutcome> outcome_;
  // Until when the call may wait, and what is kept; none: nothing is asked for.
  std::optional<LookedUp> known_;

  // The request.
  SessionId session_;  // zero: nothing is done for a session
  NamespaceKey ns_;
  std::span<const Token> tokens_;
  std::optional<uint32_t> max_tokens_;
  PrefixHandle after_;
  std::optional<LoadAction> load_;  // none: nothing is looked up

  std::optional<Matching> match_;
};

// Counts a call that is looked up for `session`. Ends the look-up if there is
// no room for it.
absl::Status KeepWhileLookedUp(PrefixCache& cache, PrefixLoader& loader,
                               WaitingCall& call, SessionId session);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_MATCH_CALL_H_
