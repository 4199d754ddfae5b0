#ifndef PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_
#define PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_

#include <yaml-cpp/yaml.h>

#include <map>
#include <string>
#include <vector>

namespace pando {

// Throws what CLI11 takes for an error in its config file, with the line.
[[noreturn]] void FailInConfig(const YAML::Node& node,
                               const std::string& message);

// The fields of `entry`, a map of some of `keys`, each given once. `where` is
// its place: "quotas[1]". Fails as above.
std::map<std::string, YAML::Node> ReadEntry(
    const YAML::Node& entry, const std::string& where,
    const std::vector<std::string>& keys);

// A text that is not empty, the value of `key` there.
std::string ReadText(const YAML::Node& value, const std::string& where,
                     const std::string& key);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_YAML_ENTRY_H_
