#include "core/requests/name_pattern.h"

#include <fnmatch.h>

#include <algorithm>

namespace pando {

bool MatchesPattern(const std::string& pattern, std::string name) {
  // To fnmatch, a zero byte would be the end of the name. So it gets another
  // byte in its place, which only a wildcard matches.
  std::replace(name.begin(), name.end(), '\0', '\1');
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace pando
