#ifndef PANDO_SERVICE_CONSOLE_SESSION_JSON_H_
#define PANDO_SERVICE_CONSOLE_SESSION_JSON_H_

#include <nlohmann/json.hpp>

#include "core/requests/operator_results.h"
#include "service/console/forest.h"

namespace pando {

// The open sessions. `locks` are the oldest of all.
nlohmann::json SessionsJson(const SessionList& sessions, const LockList& locks);

// The locks of one session, with the path to the node of each. The path is
// empty when the node is newer than the forest.
nlohmann::json LocksJson(const LockList& locks, const Forest& forest);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_SESSION_JSON_H_
