#ifndef PANDO_CORE_MATCH_H_
#define PANDO_CORE_MATCH_H_

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/cache_parts.h"
#include "core/requests.h"
#include "core/session_table.h"

namespace pando {

// The steps of PrefixCache::Match.

// INVALID_FIELD when the request asks without a lock for what needs one.
absl::Status CheckMatch(const MatchRequest& request);

// Finds the longest cached prefix; on request locks it for `session` (null: no
// lock is asked for) and reserves pages for the rest, or begins to wait. An
// error changes nothing. Fills in `result`, whose vectors have room.
absl::Status MatchAndLock(CacheParts& parts, const MatchRequest& request,
                          Session* session, MatchResult& result);

// A long prompt is copied outside the mutex, and given to its lock afterwards:
// the tokens after the match that the reserved pages have room for.
HeldPrompt CopyPrompt(const MatchRequest& request, const MatchResult& result);
// Nothing happens when the lock is gone by now, or was moved by a caller that
// has its id from a repeat of the request.
void HoldPrompt(CacheParts& parts, const MatchRequest& request,
                const MatchResult& result, HeldPrompt prompt);

}  // namespace pando

#endif  // PANDO_CORE_MATCH_H_
