#ifndef PANDO_CORE_MATCH_MATCH_H_
#define PANDO_CORE_MATCH_MATCH_H_

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/parts/cache_parts.h"
#include "core/requests/requests.h"
#include "core/sessions/session_table.h"

namespace pando {

// The parts of PrefixCache::Match, which Matching puts together.

// INVALID_FIELD when the request asks without a lock for what needs one.
absl::Status CheckMatch(const MatchRequest& request);

// The pages that a match reserves. There is room for all of them when it
// begins, but it reserves no more than one step's worth of them.
struct MatchedReservation {
  uint32_t quota_class = 0;
  uint32_t pages = 0;
};

// Finds the longest cached prefix; on request locks it for `session` (null: no
// lock is asked for) and begins to reserve pages for the rest, or begins to
// wait. An error changes nothing. Fills in `result`, whose vectors the caller
// has given enough capacity, so that nothing is allocated under the mutex.
absl::Status MatchAndLock(CacheParts& parts, const MatchRequest& request,
                          Session* session, MatchResult& result,
                          MatchedReservation& reservation);

// A lock holds the tokens after the match that its reserved pages have room
// for. CopyPrompt copies them outside the mutex; HoldPrompt then gives the copy
// to the lock. HoldPrompt does nothing when the lock was released meanwhile, or
// moved by a caller that learned its id from a repeat of the request.
HeldPrompt CopyPrompt(const MatchRequest& request, const MatchResult& result);
void HoldPrompt(CacheParts& parts, const MatchRequest& request,
                const MatchResult& result, HeldPrompt prompt);

}  // namespace pando

#endif  // PANDO_CORE_MATCH_MATCH_H_
