#ifndef PANDO_SERVICE_OPTIONS_UNKNOWN_NAME_H_
#define PANDO_SERVICE_OPTIONS_UNKNOWN_NAME_H_

#include <string>
#include <vector>

namespace pando {

// "unknown KIND 'NAME'; did you mean 'NEAREST'?", the nearest of the known
// names by edit distance. known must not be empty.
std::string UnknownName(const std::string& kind, const std::string& name,
                        const std::vector<std::string>& known);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_UNKNOWN_NAME_H_
