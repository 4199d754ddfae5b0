#ifndef PANDO_CORE_INVARIANTS_H_
#define PANDO_CORE_INVARIANTS_H_

#include <string>
#include <vector>

#include "core/cache_parts.h"

namespace pando {

// A sentence for each invariant of docs/design.md that does not hold, within a
// part or between parts. Linear in the cache.
std::vector<std::string> FindViolations(const CacheParts& parts);

}  // namespace pando

#endif  // PANDO_CORE_INVARIANTS_H_
