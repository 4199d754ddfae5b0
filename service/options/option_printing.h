#ifndef PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_
#define PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_

#include <functional>
#include <string>

#include "service/options/options.h"

namespace pando {

// What the options come to, for people. They are complete.
std::string Summary(const Options& options);

// The options as a YAML file that is read as the same options, each with where
// its value is from. `source_of` tells that for an option, or for "quotas".
std::string ConfigFile(
    const Options& options,
    const std::function<std::string(const std::string& name)>& source_of);

// All options and what they mean, as JSON.
std::string OptionCatalogueJson();

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_
