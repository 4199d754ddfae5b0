#ifndef PANDO_SERVICE_SECURITY_CREDENTIAL_H_
#define PANDO_SERVICE_SECURITY_CREDENTIAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pando {

// What a caller may do; each may do what those before it may.
enum class Role {
  kReader,  // ask what is cached, and why
  kWorker,  // and hold a session: lock, reserve, publish, map the pool
  kAdmin,   // and evict, flush, drain, and take from others
};

// "reader" and so on.
std::string_view RoleName(Role role);
// None: there is no such role.
std::optional<Role> ParseRole(std::string_view name);

// Namespaces, by patterns as for file names; unset is like empty.
struct NamespacePattern {
  std::string extra_key = "*";
  std::string cache_salt = "*";

  bool Matches(const std::string& key, const std::string& salt) const;
  bool operator==(const NamespacePattern&) const = default;
};

// One kind of caller, and what it may do. It is recognised in one of three
// ways.
struct Credential {
  std::string name;
  Role role = Role::kReader;
  std::optional<uint32_t> uid = {};   // of the process on a Unix socket
  std::string token_file = {};        // a bearer token in each line
  std::string certificate_name = {};  // a name of the certificate over TLS
  // Which namespaces it may name; empty: all.
  std::vector<NamespacePattern> namespaces = {};

  bool MayName(const std::string& extra_key, const std::string& salt) const;
  bool operator==(const Credential&) const = default;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_CREDENTIAL_H_
