#ifndef PANDO_SERVICE_OPTIONS_OPTION_WORDS_H_
#define PANDO_SERVICE_OPTIONS_OPTION_WORDS_H_

#include <string>

namespace pando {

// Returns the option for which engines and model files have the word `word`,
// such as "heads" for "num-key-value-heads"; "" if there is none. The parts of
// a word may have '-' or '_' between them, and any case.
std::string OptionFor(const std::string& word);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_WORDS_H_
