#include "service/options/yaml_config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "base/unknown_name.h"
#include "service/options/option_words.h"
#include "service/options/yaml_block_quotas.h"
#include "service/options/yaml_credentials.h"
#include "service/options/yaml_entry.h"
#include "service/options/yaml_quotas.h"

namespace pando {
namespace {

// Appends the items below `node`, whose own key is `key`.
void Flatten(const YAML::Node& node, const std::string& key,
             const std::vector<std::string>& known,
             std::vector<CLI::ConfigItem>& items) {
  const auto begins_so = [&](const std::string& name) {
    return absl::StartsWith(name, key + "-");
  };
  // Does not descend below a key that leads to no option, because through an
  // alias a map may contain itself.
  if (node.IsMap() && std::any_of(known.begin(), known.end(), begins_so)) {
    for (const auto& entry : node) {
      Flatten(entry.second, key + "-" + entry.first.as<std::string>(), known,
              items);
    }
    return;
  }
  if (std::find(known.begin(), known.end(), key) == known.end()) {
    FailInConfig(node, UnknownName("key", key, known, OptionFor(key)));
  }
  if (!node.IsScalar() && !node.IsNull()) {
    FailInConfig(node, key + " is a list or a map; must be one value");
  }
  for (const CLI::ConfigItem& item : items) {
    if (item.name == key) FailInConfig(node, key + " is given twice");
  }
  CLI::ConfigItem item;
  item.name = key;
  item.inputs = {node.IsNull() ? "" : node.Scalar()};
  items.push_back(std::move(item));
}

}  // namespace

bool YamlConfig::IsList(const std::string& key) {
  return key == kQuotas || key == kBlockQuotas || key == kCredentials;
}

void YamlConfig::ReadList(const std::string& key,
                          const YAML::Node& value) const {
  if (key == kQuotas) lists_->quotas = ReadQuotas(value);
  if (key == kBlockQuotas) lists_->block_quotas = ReadBlockQuotas(value);
  if (key == kCredentials) lists_->credentials = ReadCredentials(value);
}

std::vector<CLI::ConfigItem> YamlConfig::from_config(
    std::istream& input) const {
  std::vector<CLI::ConfigItem> found;
  std::set<std::string> lists;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(input);
    if (documents.empty() || documents.front().IsNull()) return found;
    if (documents.size() > 1) {
      FailInConfig(documents[1], "is a second document; there may be one");
    }
    const YAML::Node& root = documents.front();
    if (!root.IsMap()) FailInConfig(root, "must be a map of options");
    for (const auto& entry : root) {
      const std::string key = entry.first.as<std::string>();
      if (!IsList(key)) {
        Flatten(entry.second, key, known_keys_, found);
        continue;
      }
      if (!lists.insert(key).second) {
        FailInConfig(entry.first, key + " is given twice");
      }
      ReadList(key, entry.second);
    }
  } catch (const YAML::Exception& error) {
    throw CLI::ConfigError(error.what(), CLI::ExitCodes::ConfigError);
  }
  return found;
}

}  // namespace pando
