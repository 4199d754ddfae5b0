#ifndef PANDO_SERVICE_CONSOLE_FOREST_JSON_H_
#define PANDO_SERVICE_CONSOLE_FOREST_JSON_H_

#include <nlohmann/json.hpp>

#include "service/console/forest.h"
#include "service/console/picture.h"

namespace pando {

// A namespace as the page shows it, without its salt.
nlohmann::json NamespaceJson(const NamespaceCopy& ns);

// The picture of the branches below `root`, and the path to it.
nlohmann::json TreeJson(const Forest& forest, Forest::Index root,
                        uint32_t limit, uint32_t min_pages);

// One branch, the path to it, and at most `limit` of its children, from number
// `first_child` on.
nlohmann::json BranchJson(const Forest& forest, Forest::Index index,
                          uint32_t first_child, uint32_t limit);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_FOREST_JSON_H_
