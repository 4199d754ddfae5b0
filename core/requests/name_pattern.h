#ifndef PANDO_CORE_REQUESTS_NAME_PATTERN_H_
#define PANDO_CORE_REQUESTS_NAME_PATTERN_H_

#include <string>

namespace pando {

// Whether `name` matches `pattern`, as a shell matches file names:
// "tenant-a/*". Only a wildcard matches a zero byte.
bool MatchesPattern(const std::string& pattern, std::string name);

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_NAME_PATTERN_H_
