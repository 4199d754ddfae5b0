#ifndef PANDO_SERVICE_CONSOLE_SEARCH_H_
#define PANDO_SERVICE_CONSOLE_SEARCH_H_

#include <nlohmann/json.hpp>
#include <string>

#include "core/requests/operator_results.h"
#include "service/console/forest.h"

namespace pando {

// Returns what `text` finds: the node, the namespace and the session with this
// number, and the namespaces and sessions whose names contain it. The list has
// at most as many entries as the page shows.
nlohmann::json SearchJson(const std::string& text, const Forest& forest,
                          const SessionList& sessions);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_SEARCH_H_
