#ifndef PANDO_SERVICE_OPTIONS_YAML_CONFIG_H_
#define PANDO_SERVICE_OPTIONS_YAML_CONFIG_H_

#include <yaml-cpp/yaml.h>

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "core/eviction/quota_classes.h"
#include "core/requests/block_requests.h"
#include "service/security/credential.h"

namespace pando {

// The lists in the configuration file, which are not options.
struct ConfigLists {
  std::vector<QuotaClass> quotas;
  std::vector<BlockQuota> block_quotas;
  std::vector<Credential> credentials;
};

// Lets CLI11 read its config file as YAML. Owned by the CLI::App of one parse.
// Keys of nested maps are joined with '-', so that {pool: {pages: 1}} and
// {pool-pages: 1} are the same. The lists are read into ConfigLists instead.
// Reports errors as CLI11 requires: it throws a CLI::ConfigError.
class YamlConfig final : public CLI::Config {
 public:
  static constexpr char kQuotas[] = "quotas";
  static constexpr char kBlockQuotas[] = "block_quotas";
  static constexpr char kCredentials[] = "credentials";

  // A key that is not among `known_keys` is an error. The lists are stored in
  // `lists`.
  YamlConfig(std::vector<std::string> known_keys, ConfigLists* lists)
      : known_keys_(std::move(known_keys)), lists_(lists) {
    for (const char* list : {kQuotas, kBlockQuotas, kCredentials}) {
      known_keys_.emplace_back(list);
    }
  }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // CLI11 requires this function; pandod never writes a config file with it.
  std::string to_config(const CLI::App*, bool, bool,
                        std::string) const override {
    return "";
  }

 private:
  static bool IsList(const std::string& key);
  void ReadList(const std::string& key, const YAML::Node& value) const;

  std::vector<std::string> known_keys_;
  ConfigLists* const lists_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_YAML_CONFIG_H_
