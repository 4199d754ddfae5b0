#ifndef PANDO_SERVICE_OPTIONS_YAML_QUOTAS_H_
#define PANDO_SERVICE_OPTIONS_YAML_QUOTAS_H_

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "core/eviction/quota_classes.h"

namespace pando {

// Reads the list of quota classes of the config file. Each is a map of class,
// extra_key, floor_pages, cap_pages and max_retention_seconds; the last three
// may be left out. Throws CLI::ConfigError.
std::vector<QuotaClass> ReadQuotas(const YAML::Node& list);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_YAML_QUOTAS_H_
