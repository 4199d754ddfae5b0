#ifndef PANDO_CORE_MATCH_REPEATS_H_
#define PANDO_CORE_MATCH_REPEATS_H_

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/status_macros.h"
#include "core/parts/cache_parts.h"
#include "core/requests/errors.h"
#include "core/sessions/session_table.h"

namespace pando {

// Calls with a request id are carried out once, however often they are sent. A
// call is under way while it takes several steps; a repeat of it also takes
// steps, which do nothing, until the answer exists.

inline bool IsUnderWay(const Session& session, RequestId id) {
  return session.under_way.contains(id);
}

inline void BeginSteps(Session& session, RequestId id) {
  if (id != RequestId()) session.under_way.insert(id);
}

inline void EndSteps(Session& session, RequestId id) {
  session.under_way.erase(id);
}

// Returns the answer of an earlier call of the session with this id; null if
// this call is the first. REQUEST_ID_REUSED if a call of another type had the
// id, or if a call with it is under way. So a type of call that can be under
// way tests IsUnderWay first, and waits.
template <typename T>
absl::StatusOr<const T*> FindAnswer(CacheParts& parts, const Session& session,
                                    RequestId id) {
  if (id == RequestId()) return nullptr;
  if (IsUnderWay(session, id)) {
    return MakeError(Reason::kRequestIdReused,
                     "request_id is that of a call that is not answered yet");
  }
  ASSIGN_OR_RETURN(const T* const answer, session.answers.Find<T>(id));
  if (answer != nullptr) ++parts.journal.counters().repeated_requests;
  return answer;
}

// Stores the answer of a call with this id, if it has one.
template <typename T>
void KeepAnswer(CacheParts& parts, Session& session, RequestId id,
                const T& answer) {
  if (id != RequestId()) parts.sessions.KeepAnswer(session, id, answer);
}

// How many pages no session holds.
inline PageRoom RoomOf(const CacheParts& parts) {
  return {.free = parts.pool.count(PageState::kFree),
          .evictable = parts.tree.evictable_pages()};
}

// The answer of an earlier call, marked as a repeat and with the present room.
template <typename T>
T RepeatedNow(const CacheParts& parts, T first) {
  first.room = RoomOf(parts);
  first.is_repeat = true;
  return first;
}

// DRAINING after BeginDrain, else OK.
inline absl::Status CheckAdmits(const CacheParts& parts) {
  if (!parts.is_draining) return absl::OkStatus();
  return MakeError(Reason::kDraining,
                   "the server is shutting down and admits nothing new");
}

}  // namespace pando

#endif  // PANDO_CORE_MATCH_REPEATS_H_
