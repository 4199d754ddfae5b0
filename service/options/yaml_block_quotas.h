#ifndef PANDO_SERVICE_OPTIONS_YAML_BLOCK_QUOTAS_H_
#define PANDO_SERVICE_OPTIONS_YAML_BLOCK_QUOTAS_H_

#include <yaml-cpp/yaml.h>

#include <vector>

#include "core/requests/block_requests.h"

namespace pando {

// Reads the list of block quotas of the config file. Each is a map of name,
// label, floor and cap; the last two are sizes and may be left out. Throws
// CLI::ConfigError.
std::vector<BlockQuota> ReadBlockQuotas(const YAML::Node& list);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_YAML_BLOCK_QUOTAS_H_
