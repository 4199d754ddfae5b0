#ifndef PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_
#define PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_

#include <functional>
#include <string>

#include "service/options/options.h"

namespace pando {

// Returns a summary of complete options, for people.
std::string Summary(const Options& options);

// Returns the options as a YAML file; reading it gives the same options. A
// comment in the file tells where each value is from: `source_of` returns that
// for an option, or for "quotas" or "credentials".
std::string ConfigFile(
    const Options& options,
    const std::function<std::string(const std::string& name)>& source_of);

// Returns all options and what they mean, as JSON.
std::string OptionCatalogueJson();

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_OPTION_PRINTING_H_
