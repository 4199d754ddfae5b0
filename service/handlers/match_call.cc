#include "service/handlers/match_call.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"
#include "os/monotonic_clock.h"
#include "service/handlers/wire.h"

namespace pando {
namespace {

constexpr uint32_t kMaxPendingWaitMs = 600'000;

absl::Status CheckMatch(const v1::MatchPrefixRequest& request) {
  if (request.pending_wait_ms() > kMaxPendingWaitMs) {
    return MakeError(
        Reason::kInvalidField,
        absl::StrCat("pending_wait_ms is ", request.pending_wait_ms(),
                     "; the limit is ", kMaxPendingWaitMs));
  }
  return absl::OkStatus();
}

// Returns what the loader is asked to do, or none if it is not asked.
absl::StatusOr<std::optional<LoadAction>> LoadActionOf(
    const v1::MatchPrefixRequest& request) {
  switch (request.load()) {
    case v1::LOAD_UNSPECIFIED:
      if (request.pending_wait_ms() == 0 || !request.lock()) break;
      return LoadAction::kAwait;
    case v1::LOAD_NO:
      return LoadAction::kTell;
    case v1::LOAD_START:
      return LoadAction::kStart;
    default:
      return MakeError(
          Reason::kInvalidField,
          absl::StrCat("load is ", static_cast<int>(request.load()),
                       ", which this server does not know"));
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<bool> MatchCall::Begin() {
  TakeUp();
  if (call_.is_cancelled()) return absl::CancelledError("the caller is gone");
  if (state_ == State::kGivenUp) {
    return absl::CancelledError("the call was sent again, and waits no longer");
  }
  RETURN_IF_ERROR(Read());
  if (state_ == State::kArrived) {
    ASSIGN_OR_RETURN(const bool is_looked_up, LookUp());
    if (is_looked_up) return false;
  }
  match_.emplace(parts_.cache->Start(Match()));
  return true;
}

void MatchCall::TakeUp() {
  const PendingMatches::Name name(request_.session_id(), request_.request_id());
  std::optional<PendingMatches::Waited> waited;
  if (waits()) {
    waited = parts_.pending->End(call_);
  } else {
    parts_.pending->GiveUp(name);
  }
  if (waited.has_value()) {
    const bool timed_out = waited->outcome == v1::PENDING_OUTCOME_TIMED_OUT;
    state_ = waited->is_given_up ? State::kGivenUp
             : timed_out         ? State::kTimedOut
                                 : State::kWaited;
    outcome_ = waited->outcome;
    known_ = waited->looked_up;
  } else if (parts_.loader != nullptr) {
    known_ = parts_.loader->End(call_);
    if (known_.has_value()) state_ = State::kLookedUp;
  }
}

absl::Status MatchCall::Read() {
  RETURN_IF_ERROR(CheckMatch(request_));
  ASSIGN_OR_RETURN(tokens_, TokensOf(request_.tokens(), parts_.max_tokens));
  ASSIGN_OR_RETURN(ns_, NamespaceOf(request_.namespace_()));
  ASSIGN_OR_RETURN(after_, AfterOf(request_, parts_.epoch));
  ASSIGN_OR_RETURN(load_, LoadActionOf(request_));
  max_tokens_ = MaxTokensOf(request_);
  if (request_.lock() || load_ == LoadAction::kStart) {
    session_ = SessionId(request_.session_id());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MatchCall::LookUp() {
  const bool is_asked = parts_.loader != nullptr && load_.has_value();
  if (!waits() && !is_asked) return false;
  const absl::Duration time =
      waits() ? absl::Milliseconds(request_.pending_wait_ms()) : kLookupTime;
  known_ = {.deadline = MonotonicNow() + time};
  if (!is_asked) return false;
  absl::StatusOr<bool> is_looked_up = BeginLookUp();
  // Calls that act for no session share one account of bytes. If the others
  // have filled it, this call does not fail: it goes on without a look-up.
  if (session_ == SessionId() &&
      ReasonOf(is_looked_up.status()) == Reason::kSessionLimit) {
    return false;
  }
  return is_looked_up;
}

// Checks the session first, so that nothing is loaded for a session that is
// gone.
absl::StatusOr<bool> MatchCall::BeginLookUp() {
  if (load_ != LoadAction::kTell) {
    RETURN_IF_ERROR(parts_.cache->CheckSession(session_));
  }
  const PrefixQuery query = {
      .ns = ns_, .tokens = tokens_, .max_tokens = max_tokens_, .after = after_};
  ASSIGN_OR_RETURN(
      const bool is_begun,
      parts_.loader->Begin(call_, session_, query, *load_, known_->deadline));
  if (!is_begun) return false;
  RETURN_IF_ERROR(
      KeepWhileLookedUp(*parts_.cache, *parts_.loader, call_, session_));
  return true;
}

MatchRequest MatchCall::Match() const {
  return {.session = session_,
          .ns = ns_,
          .tokens = tokens_,
          .max_tokens = max_tokens_,
          .lock = request_.lock(),
          .reserve_tokens = request_.reserve_tokens(),
          .touch = !request_.has_touch() || request_.touch(),
          .after = after_,
          .wait = waits() && state_ != State::kTimedOut,
          .request_id = RequestId(request_.request_id())};
}

std::optional<absl::Status> MatchCall::End() {
  ASSIGN_OR_RETURN(const MatchResult result, match_->Take());
  if (result.wait != WaitId()) return Wait(result.wait);
  Verify(result);
  Answer(result);
  return absl::OkStatus();
}

std::optional<absl::Status> MatchCall::Wait(WaitId wait) {
  if (absl::Status kept = call_.Keep(*parts_.cache, session_); !kept.ok()) {
    parts_.cache->CancelWait(wait);
    return kept;
  }
  const PendingMatches::Name name(request_.session_id(), request_.request_id());
  parts_.pending->Begin(call_, name, wait, *known_);
  return std::nullopt;
}

// A repeat is not verified: since the first answer its pages may have gone to
// another session, and those that were reserved may be cached.
void MatchCall::Verify(const MatchResult& result) {
  if (parts_.verifier == nullptr || result.is_repeat) return;
  parts_.verifier->HandedOut(result.pages);
  parts_.verifier->Reserved(result.reserved);
}

void MatchCall::Answer(const MatchResult& result) {
  response_.set_matched_tokens(result.matched_tokens);
  AppendPages(result.pages, response_.mutable_page_ids());
  response_.set_lock_id(result.lock.value());
  AppendPages(result.reserved, response_.mutable_reserved_page_ids());
  if (result.handle != PrefixHandle()) {
    FillHandle(result.handle, parts_.epoch, response_.mutable_handle());
  }
  response_.set_pending(
      outcome_.value_or(result.is_pending ? v1::PENDING_OUTCOME_NOT_AWAITED
                                          : v1::PENDING_OUTCOME_UNSPECIFIED));
  if (known_.has_value()) {
    FillLoadable(known_->kept_of_first(), result.matched_tokens, response_);
  }
  response_.set_free_pages(result.room.free);
  response_.set_evictable_pages(result.room.evictable);
}

absl::Status KeepWhileLookedUp(PrefixCache& cache, PrefixLoader& loader,
                               WaitingCall& call, SessionId session) {
  absl::Status kept = call.Keep(cache, session);
  if (!kept.ok()) loader.End(call);
  return kept;
}

}  // namespace pando
