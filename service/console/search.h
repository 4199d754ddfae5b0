#ifndef PANDO_SERVICE_CONSOLE_SEARCH_H_
#define PANDO_SERVICE_CONSOLE_SEARCH_H_

#include <nlohmann/json.hpp>
#include <string>

#include "core/requests/operator_results.h"
#include "service/console/forest.h"

namespace pando {

// Searches for `text`: the node, namespace or session with this number, and the
// namespaces and sessions whose names contain it; at most as many as the page
// shows.
nlohmann::json SearchJson(const std::string& text, const Forest& forest,
                          const SessionList& sessions);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_SEARCH_H_
