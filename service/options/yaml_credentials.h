#ifndef PANDO_SERVICE_OPTIONS_YAML_CREDENTIALS_H_
#define PANDO_SERVICE_OPTIONS_YAML_CREDENTIALS_H_

#include <yaml-cpp/yaml.h>

#include <vector>

#include "service/security/credential.h"

namespace pando {

// Reads the list of credentials of the config file. Each entry is a map of
// name, role, one of uid, token_file and certificate_name, and, unless it may
// name all namespaces, a list of those that it may name. Throws
// CLI::ConfigError.
std::vector<Credential> ReadCredentials(const YAML::Node& list);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_YAML_CREDENTIALS_H_
