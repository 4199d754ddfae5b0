#ifndef PANDO_SERVICE_CONSOLE_SESSION_JSON_H_
#define PANDO_SERVICE_CONSOLE_SESSION_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/requests/operator_results.h"
#include "service/console/forest.h"

namespace pando {

// Returns how many of the sessions are pandod's own.
uint32_t InternalSessions(const SessionList& sessions);

// Returns the sessions whose name contains `text` or whose number is `text`; an
// empty text finds all. The list has at most `limit` sessions, those that hold
// the most first. `locks` are the oldest locks of all sessions.
nlohmann::json SessionsJson(const SessionList& sessions, const LockList& locks,
                            const std::string& text, size_t limit);

// Returns the locks of one session, each with the path to its node. A path is
// empty if the node is newer than the forest.
nlohmann::json LocksJson(const LockList& locks, const Forest& forest);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_SESSION_JSON_H_
