#ifndef PANDO_BASE_UNKNOWN_NAME_H_
#define PANDO_BASE_UNKNOWN_NAME_H_

#include <string>
#include <vector>

namespace pando {

// "unknown KIND 'NAME'; did you mean 'NEAREST'?" where one of the known names
// is like it, by edit distance; else "unknown KIND 'NAME'; see --help".
// `other_word`, if not empty, is the known name that the caller takes for
// meant: another word for the same thing.
std::string UnknownName(const std::string& kind, const std::string& name,
                        const std::vector<std::string>& known,
                        const std::string& other_word = "");

}  // namespace pando

#endif  // PANDO_BASE_UNKNOWN_NAME_H_
