#ifndef PANDO_SERVICE_CONSOLE_FOREST_JSON_H_
#define PANDO_SERVICE_CONSOLE_FOREST_JSON_H_

#include <nlohmann/json.hpp>

#include "service/console/forest.h"
#include "service/console/picture.h"

namespace pando {

// Returns a namespace as the page shows it, without its salt.
nlohmann::json NamespaceJson(const NamespaceCopy& ns);

// Returns the picture of the branches below `root` (see MakePicture), and the
// path to `root`.
nlohmann::json TreeJson(const Forest& forest, Forest::Index root,
                        uint32_t limit, uint32_t min_pages);

// Returns one branch, the path to it, and at most `limit` of its children, from
// child number `first_child` on.
nlohmann::json BranchJson(const Forest& forest, Forest::Index index,
                          uint32_t first_child, uint32_t limit);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_FOREST_JSON_H_
