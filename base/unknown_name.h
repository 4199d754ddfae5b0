#ifndef PANDO_BASE_UNKNOWN_NAME_H_
#define PANDO_BASE_UNKNOWN_NAME_H_

#include <string>
#include <vector>

namespace pando {

// Returns a message for a name that is not known: "unknown KIND 'NAME'; did you
// mean 'NEAREST'?" if one of the known names is similar by edit distance, else
// "unknown KIND 'NAME'; see --help". `other_word`, if it is not empty, is used
// as NEAREST: the caller knows that `name` is another word for it.
std::string UnknownName(const std::string& kind, const std::string& name,
                        const std::vector<std::string>& known,
                        const std::string& other_word = "");

}  // namespace pando

#endif  // PANDO_BASE_UNKNOWN_NAME_H_
