#ifndef PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_
#define PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <vector>

namespace pando {

// Throws the CLI::ConfigError that CLI11 expects, with the line of `node`.
[[noreturn]] void FailInConfig(const YAML::Node& node,
                               const std::string& message);

// The fields of the map `entry`, by key. A key that is not in `keys`, or is
// given twice, fails as FailInConfig. `where` is the place for errors:
// "quotas[1]".
std::map<std::string, YAML::Node> ReadEntry(
    const YAML::Node& entry, const std::string& where,
    const std::vector<std::string>& keys);

// The text of `value`, which belongs to `key` at `where`; an empty one fails.
std::string ReadText(const YAML::Node& value, const std::string& where,
                     const std::string& key);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_
