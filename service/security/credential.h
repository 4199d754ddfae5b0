#ifndef PANDO_SERVICE_SECURITY_CREDENTIAL_H_
#define PANDO_SERVICE_SECURITY_CREDENTIAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pando {

// The rights of a caller. Each role includes those before it.
enum class Role {
  kReader,  // asks what is cached, and why
  kWorker,  // holds a session: locks, reserves, publishes, maps the pool
  kAdmin,   // evicts, flushes, drains, and takes from others
};

// Returns the name of a role: "reader" and so on.
std::string_view RoleName(Role role);
// Returns the role of this name, or none if there is no such role.
std::optional<Role> ParseRole(std::string_view name);

// Matches namespaces by patterns as for file names. An unset field of a
// namespace is matched like an empty text.
struct NamespacePattern {
  std::string extra_key = "*";
  std::string cache_salt = "*";

  // Returns whether the namespace of this extra_key and cache_salt matches.
  bool Matches(const std::string& key, const std::string& salt) const;
  bool operator==(const NamespacePattern&) const = default;
};

// One kind of caller, and what it may do. A caller is recognised by one of uid,
// token_file and certificate_name.
struct Credential {
  std::string name;
  Role role = Role::kReader;
  std::optional<uint32_t> uid = {};   // the user of a process on a Unix socket
  std::string token_file = {};        // a file with a bearer token in each line
  std::string certificate_name = {};  // a name in the client's TLS certificate
  // The namespaces it may name; empty: all.
  std::vector<NamespacePattern> namespaces = {};

  // Returns whether the caller may name this namespace.
  bool MayName(const std::string& extra_key, const std::string& salt) const;
  bool operator==(const Credential&) const = default;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_CREDENTIAL_H_
