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

// One MatchPrefix call, from one wait to the next. The call may wait twice: for
// the look-up of its prompt in the tiers, and for a pending page. Its handler
// runs again after each wait:
//
//   kArrived ----> kLookedUp ----> kWaited, kTimedOut ----> answered
//     until the tiers      until the page after
//     have told what       the match is published,
//     they keep            or not
//
// A call that needs neither wait goes from kArrived to its answer. A call that
// has waited for one page may wait for the next. PrefixLoader and
// PendingMatches know the calls that wait. A MatchCall is made anew when a wait
// ends; SteppedCalls owns it while the match takes its steps.
//
// Used in the turn.
class MatchCall final : public SteppedCalls::Work {
 public:
  // The objects that a MatchCall uses. They outlive it.
  struct Parts {
    PrefixCache* cache;
    PendingMatches* pending;
    PrefixLoader* loader;    // null: there are no tiers
    PageVerifier* verifier;  // null: no pages are verified
    // The most tokens that a request may have.
    uint32_t max_tokens;
    uint64_t epoch;
  };

  MatchCall(const Parts& parts, const v1::MatchPrefixRequest& request,
            v1::MatchPrefixResponse& response, WaitingCall& call)
      : parts_(parts), request_(request), response_(response), call_(call) {}

  // Finds out in which state the call is, and prepares the match. Returns false
  // if the call waits until its prompt has been looked up. Returns an error to
  // answer with if the request is not valid, the caller is gone or has sent the
  // call again, or the look-up cannot begin.
  absl::StatusOr<bool> Begin();
  // Takes steps of the match for as long as one turn allows. REQUIRES: Begin
  // has returned true.
  SteppedCalls::Progress Step() override {
    return SteppedCalls::TakeSteps(*parts_.cache, *match_);
  }
  // The messages and the call are not used from now on.
  bool Abandon() override { return match_->Abandon(); }
  // Ends the match after its last step. Returns the status of the answer, or
  // none if the call waits for a pending page.
  std::optional<absl::Status> End();

 private:
  enum class State {
    kArrived,
    kLookedUp,  // the tiers have answered: see `known_`
    kWaited,    // the page is published or loaded, or its owner has left
    kTimedOut,  // the call may not wait any more
    kGivenUp,   // the caller has sent the call again and wants no answer
  };

  bool waits() const { return request_.pending_wait_ms() > 0; }
  void TakeUp();
  // Converts the request.
  absl::Status Read();
  // Asks the loader what the tiers keep, if the request wants that. Returns
  // whether the call waits for the answer.
  absl::StatusOr<bool> LookUp();
  // Asks the loader. Returns whether the call waits for the answer. Returns an
  // error if the session is gone or its account has no room.
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
  // How the last wait for a page ended; none if the call has not waited for
  // one.
  std::optional<v1::PendingOutcome> outcome_;
  // Until when the call may wait, and what the tiers keep of the prompt; none
  // if the call neither waits nor asks the tiers.
  std::optional<LookedUp> known_;

  // The parts of the request, as Read has converted them.
  SessionId session_;  // zero: the call acts for no session
  NamespaceKey ns_;
  std::span<const Token> tokens_;
  std::optional<uint32_t> max_tokens_;
  PrefixHandle after_;
  std::optional<LoadAction> load_;  // none: the tiers are not asked

  std::optional<Matching> match_;
};

// Counts the request of a call that waits for a look-up in the account of bytes
// of `session`. Returns SESSION_LIMIT, and ends the look-up, if there is no
// room.
absl::Status KeepWhileLookedUp(PrefixCache& cache, PrefixLoader& loader,
                               WaitingCall& call, SessionId session);

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_MATCH_CALL_H_
