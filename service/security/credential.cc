#include "service/security/credential.h"

#include <fnmatch.h>

#include <array>
#include <utility>

#include "absl/algorithm/container.h"

namespace pando {
namespace {

constexpr std::array kRoles = {
    std::pair<Role, std::string_view>{Role::kReader, "reader"},
    std::pair<Role, std::string_view>{Role::kWorker, "worker"},
    std::pair<Role, std::string_view>{Role::kAdmin, "admin"}};

// fnmatch would not see what comes after a zero byte, so such a text never
// fits.
bool Fits(const std::string& pattern, const std::string& text) {
  return text.find('\0') == std::string::npos &&
         fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace

std::string_view RoleName(Role role) {
  return kRoles[static_cast<size_t>(role)].second;
}

std::optional<Role> ParseRole(std::string_view name) {
  for (const auto& [role, its_name] : kRoles) {
    if (its_name == name) return role;
  }
  return std::nullopt;
}

bool NamespacePattern::Matches(const std::string& key,
                               const std::string& salt) const {
  return Fits(extra_key, key) && Fits(cache_salt, salt);
}

bool Credential::MayName(const std::string& extra_key,
                         const std::string& salt) const {
  return namespaces.empty() ||
         absl::c_any_of(namespaces, [&](const NamespacePattern& pattern) {
           return pattern.Matches(extra_key, salt);
         });
}

}  // namespace pando
