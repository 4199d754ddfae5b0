#ifndef PANDO_CORE_MATCH_MATCH_H_
#define PANDO_CORE_MATCH_MATCH_H_

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/parts/cache_parts.h"
#include "core/requests/requests.h"
#include "core/sessions/session_table.h"

namespace pando {

// The parts of PrefixCache::Match, which Matching puts together.

// INVALID_FIELD if the request has no `lock` but sets a field that needs it.
absl::Status CheckMatch(const MatchRequest& request);

// The pages that a match is to reserve. MatchAndLock makes sure that there is
// room for all of them, but itself reserves only as many as one step may.
struct MatchedReservation {
  uint32_t quota_class = 0;
  uint32_t pages = 0;
};

// Finds the longest cached prefix. If the request asks for a lock, `session` is
// not null, and the function also locks the prefix and begins to reserve pages
// for the rest, or begins to wait for a pending page. An error changes nothing.
// The caller has given the vectors of `result` enough capacity, so that nothing
// is allocated under the mutex.
absl::Status MatchAndLock(CacheParts& parts, const MatchRequest& request,
                          Session* session, MatchResult& result,
                          MatchedReservation& reservation);

// A lock holds those tokens after the match that fit into the reserved pages.
// CopyPrompt copies them outside the mutex, see SegmentRef::Copy; HoldPrompt
// then gives the copy to the lock. HoldPrompt does nothing if the lock was
// meanwhile released, or moved by a caller that learned its id from a repeat of
// the request.
HeldPrompt CopyPrompt(const MatchRequest& request, const MatchResult& result,
                      SegmentArena* arena);
void HoldPrompt(CacheParts& parts, const MatchRequest& request,
                const MatchResult& result, HeldPrompt prompt);

}  // namespace pando

#endif  // PANDO_CORE_MATCH_MATCH_H_
