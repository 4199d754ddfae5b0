#include "service/options/yaml_credentials.h"

#include <limits>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "service/options/yaml_entry.h"

namespace pando {
namespace {

const std::vector<std::string> kKeys = {
    "name", "role", "uid", "token_file", "certificate_name", "namespaces"};
const std::vector<std::string> kNamespaceKeys = {"extra_key", "cache_salt"};

uint32_t UidOf(const YAML::Node& value, const std::string& where) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  uint32_t uid = 0;
  if (!absl::SimpleAtoi(text, &uid)) {
    FailInConfig(value, absl::StrFormat("%s: uid is '%s'; must be a whole "
                                        "number from 0 to %u",
                                        where, text,
                                        std::numeric_limits<uint32_t>::max()));
  }
  return uid;
}

Role RoleOf(const YAML::Node& value, const std::string& where) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  const std::optional<Role> role = ParseRole(text);
  if (!role.has_value()) {
    FailInConfig(value, absl::StrFormat("%s: role is '%s'; must be one of "
                                        "reader, worker, admin",
                                        where, text));
  }
  return *role;
}

std::vector<NamespacePattern> NamespacesOf(const YAML::Node& list,
                                           const std::string& where) {
  std::vector<NamespacePattern> patterns;
  if (!list.IsSequence() || list.size() == 0) {
    FailInConfig(list, where + ": namespaces must be a list that is not empty");
  }
  for (const YAML::Node& entry : list) {
    const std::string place =
        absl::StrFormat("%s.namespaces[%u]", where, patterns.size());
    const auto fields = ReadEntry(entry, place, kNamespaceKeys);
    if (fields.empty()) {
      FailInConfig(entry, place + ": extra_key and cache_salt are missing");
    }
    NamespacePattern& pattern = patterns.emplace_back();
    for (const auto& [key, value] : fields) {
      (key == "extra_key" ? pattern.extra_key : pattern.cache_salt) =
          ReadText(value, place, key);
    }
  }
  return patterns;
}

void Check(const Credential& credential, const YAML::Node& entry,
           const std::string& where) {
  const int ways = credential.uid.has_value() + !credential.token_file.empty() +
                   !credential.certificate_name.empty();
  if (ways != 1) {
    FailInConfig(entry, absl::StrFormat("%s: gives %d of uid, token_file and "
                                        "certificate_name; must give one",
                                        where, ways));
  }
  if (credential.role == Role::kAdmin && !credential.namespaces.empty()) {
    FailInConfig(entry, absl::StrFormat("%s: namespaces limit a reader or a "
                                        "worker; role is admin",
                                        where));
  }
}

Credential ReadCredential(const YAML::Node& entry, const std::string& where) {
  Credential credential;
  const auto fields = ReadEntry(entry, where, kKeys);
  for (const std::string key : {"name", "role"}) {
    if (fields.find(key) == fields.end()) {
      FailInConfig(entry, absl::StrFormat("%s: %s is missing", where, key));
    }
  }
  for (const auto& [key, value] : fields) {
    if (key == "name") credential.name = ReadText(value, where, key);
    if (key == "role") credential.role = RoleOf(value, where);
    if (key == "uid") credential.uid = UidOf(value, where);
    if (key == "token_file") {
      credential.token_file = ReadText(value, where, key);
    }
    if (key == "certificate_name") {
      credential.certificate_name = ReadText(value, where, key);
    }
    if (key == "namespaces") {
      credential.namespaces = NamespacesOf(value, where);
    }
  }
  Check(credential, entry, where);
  return credential;
}

}  // namespace

std::vector<Credential> ReadCredentials(const YAML::Node& list) {
  // An empty list would let all callers do everything.
  if (!list.IsSequence() || list.size() == 0) {
    FailInConfig(list, "credentials must be a list that is not empty");
  }
  std::vector<Credential> credentials;
  absl::flat_hash_set<std::string> names;
  for (const YAML::Node& entry : list) {
    const std::string where =
        absl::StrFormat("credentials[%u]", credentials.size());
    credentials.push_back(ReadCredential(entry, where));
    const std::string& name = credentials.back().name;
    if (!names.insert(name).second) {
      FailInConfig(entry, absl::StrFormat("%s: name is '%s', as of another "
                                          "one",
                                          where, name));
    }
  }
  return credentials;
}

}  // namespace pando
