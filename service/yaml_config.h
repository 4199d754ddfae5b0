#ifndef PANDO_SERVICE_YAML_CONFIG_H_
#define PANDO_SERVICE_YAML_CONFIG_H_

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <utility>
#include <vector>

#include "core/quota_classes.h"

namespace pando {

// Lets CLI11 read its config file as YAML. Owned by the CLI::App of one parse.
// Keys of nested maps are joined with '-', so that {pool: {pages: 1}} and
// {pool-pages: 1} are the same. The list under quotas, which is no option, goes
// its own way. Reports errors as CLI11 wants it: by throwing a
// CLI::ConfigError.
class YamlConfig final : public CLI::Config {
 public:
  static constexpr char kQuotas[] = "quotas";

  // Keys that are not among these are errors. `quotas` gets the list.
  YamlConfig(std::vector<std::string> known_keys,
             std::vector<QuotaClass>* quotas)
      : known_keys_(std::move(known_keys)), quotas_(quotas) {
    known_keys_.push_back(kQuotas);
  }

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // CLI11 asks for it; pandod never writes a config file.
  std::string to_config(const CLI::App*, bool, bool,
                        std::string) const override {
    return "";
  }

 private:
  std::vector<std::string> known_keys_;
  std::vector<QuotaClass>* const quotas_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_YAML_CONFIG_H_
