#ifndef PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_
#define PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_

#include <functional>
#include <string>

#include "service/options/options.h"

namespace pando {

// A summary of complete options, for people.
std::string Summary(const Options& options);

// Writes the options as a YAML file that is read as the same options; a comment
// tells where each value is from. `source_of` returns that for an option, or
// for "quotas".
std::string ConfigFile(
    const Options& options,
    const std::function<std::string(const std::string& name)>& source_of);

// All options and what they mean, as JSON.
std::string OptionCatalogueJson();

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_
