#ifndef PANDO_SERVICE_CONSOLE_SESSION_JSON_H_
#define PANDO_SERVICE_CONSOLE_SESSION_JSON_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/requests/operator_results.h"
#include "service/console/forest.h"

namespace pando {

// How many of the sessions are pandod's own.
uint32_t InternalSessions(const SessionList& sessions);

// The sessions whose name has `text` in it, or whose number it is: the `limit`
// that hold most, the most first. An empty text is in all. `locks` are the
// oldest of all.
nlohmann::json SessionsJson(const SessionList& sessions, const LockList& locks,
                            const std::string& text, size_t limit);

// The locks of one session, with the path to the node of each. The path is
// empty when the node is newer than the forest.
nlohmann::json LocksJson(const LockList& locks, const Forest& forest);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_SESSION_JSON_H_
