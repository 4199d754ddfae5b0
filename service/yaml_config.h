#ifndef PANDO_SERVICE_YAML_CONFIG_H_
#define PANDO_SERVICE_YAML_CONFIG_H_

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <utility>
#include <vector>

namespace pando {

// Lets CLI11 read its config file as YAML. Owned by the CLI::App of one parse.
// Keys of nested maps are joined with '-', so that {pool: {pages: 1}} and
// {pool-pages: 1} are the same. Reports errors as CLI11 wants it: by throwing
// a CLI::ConfigError.
class YamlConfig final : public CLI::Config {
 public:
  // Keys that are not among these are errors.
  explicit YamlConfig(std::vector<std::string> known_keys)
      : known_keys_(std::move(known_keys)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

  // CLI11 asks for it; pandod never writes a config file.
  std::string to_config(const CLI::App*, bool, bool,
                        std::string) const override {
    return "";
  }

 private:
  const std::vector<std::string> known_keys_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_YAML_CONFIG_H_
