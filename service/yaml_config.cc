#include "service/yaml_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "service/unknown_name.h"

namespace pando {
namespace {

[[noreturn]] void Fail(const YAML::Node& node, const std::string& message) {
  throw CLI::ConfigError(
      absl::StrFormat("line %d: %s", node.Mark().line + 1, message),
      CLI::ExitCodes::ConfigError);
}

// Appends what is under node, whose own key is key.
void Flatten(const YAML::Node& node, const std::string& key,
             const std::vector<std::string>& known,
             std::vector<CLI::ConfigItem>& items) {
  if (node.IsMap()) {
    for (const auto& entry : node) {
      const std::string name = entry.first.as<std::string>();
      Flatten(entry.second, key.empty() ? name : key + "-" + name, known,
              items);
    }
    return;
  }
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    Fail(node, UnknownName("key", key, known));
  }
  if (node.IsSequence()) Fail(node, key + " is a list; must be one value");
  for (const CLI::ConfigItem& item : items) {
    if (item.name == key) Fail(node, key + " is given twice");
  }
  CLI::ConfigItem item;
  item.name = key;
  item.inputs = {node.IsNull() ? "" : node.Scalar()};
  items.push_back(std::move(item));
}

}  // namespace

std::vector<CLI::ConfigItem> YamlConfig::from_config(
    std::istream& input) const {
  std::vector<CLI::ConfigItem> found;
  try {
    const YAML::Node root = YAML::Load(input);
    if (root.IsNull()) return found;
    if (!root.IsMap()) Fail(root, "must be a map of options");
    Flatten(root, "", known_keys_, found);
  } catch (const YAML::Exception& error) {
    throw CLI::ConfigError(error.what(), CLI::ExitCodes::ConfigError);
  }
  return found;
}

}  // namespace pando
