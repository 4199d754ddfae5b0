#ifndef PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_
#define PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <vector>

namespace pando {

// Throws the CLI::ConfigError that CLI11 expects. Its message begins with the
// line of `node`.
[[noreturn]] void FailInConfig(const YAML::Node& node,
                               const std::string& message);

// Returns the fields of the map `entry`, by key. Fails as FailInConfig does if
// `entry` is no map, or has a key that is given twice or is not in `keys`.
// `where` is the place for the message: "quotas[1]".
std::map<std::string, YAML::Node> ReadEntry(
    const YAML::Node& entry, const std::string& where,
    const std::vector<std::string>& keys);

// Returns the text of `value`, which belongs to `key` at `where`. Fails as
// FailInConfig does if it is empty or no text.
std::string ReadText(const YAML::Node& value, const std::string& where,
                     const std::string& key);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_
