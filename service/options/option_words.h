#ifndef PANDO_SERVICE_OPTIONS_OPTION_WORDS_H_
#define PANDO_SERVICE_OPTIONS_OPTION_WORDS_H_

#include <string>

namespace pando {

// The option that engines and model files have another word for, such as
// "heads" for "num-key-value-heads"; empty if `word` is none of these. Between
// the parts of a word may be '-' or '_', in capitals or not.
std::string OptionFor(const std::string& word);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_WORDS_H_
