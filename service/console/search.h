#ifndef PANDO_SERVICE_CONSOLE_SEARCH_H_
#define PANDO_SERVICE_CONSOLE_SEARCH_H_

#include <nlohmann/json.hpp>
#include <string>

#include "core/operator_results.h"
#include "service/console/forest.h"

namespace pando {

// What is meant by `text`: the node, namespace or session of this number, and
// namespaces and sessions whose names contain it; not more than a page shows.
nlohmann::json SearchJson(const std::string& text, const Forest& forest,
                          const SessionList& sessions);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_SEARCH_H_
