#include "service/options/yaml_entry.h"

#include <CLI/CLI.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/unknown_name.h"

namespace pando {

void FailInConfig(const YAML::Node& node, const std::string& message) {
  throw CLI::ConfigError(
      absl::StrFormat("line %d: %s", node.Mark().line + 1, message),
      CLI::ExitCodes::ConfigError);
}

std::map<std::string, YAML::Node> ReadEntry(
    const YAML::Node& entry, const std::string& where,
    const std::vector<std::string>& keys) {
  if (!entry.IsMap()) {
    FailInConfig(entry, absl::StrFormat("%s must be a map of %s", where,
                                        absl::StrJoin(keys, ", ")));
  }
  std::map<std::string, YAML::Node> fields;
  for (const auto& field : entry) {
    const std::string key = field.first.as<std::string>();
    if (!absl::c_linear_search(keys, key)) {
      FailInConfig(field.first, UnknownName("key of " + where, key, keys));
    }
    if (!fields.emplace(key, field.second).second) {
      FailInConfig(field.first,
                   absl::StrFormat("%s: %s is given twice", where, key));
    }
  }
  return fields;
}

std::string ReadText(const YAML::Node& value, const std::string& where,
                     const std::string& key) {
  if (!value.IsScalar() || value.Scalar().empty()) {
    FailInConfig(value, absl::StrFormat("%s: %s must be a text that is not "
                                        "empty",
                                        where, key));
  }
  return value.Scalar();
}

}  // namespace pando
