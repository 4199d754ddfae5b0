#ifndef PANDO_SERVICE_SECURITY_PERMISSIONS_H_
#define PANDO_SERVICE_SECURITY_PERMISSIONS_H_

#include <optional>
#include <string>
#include <string_view>

#include "service/security/credential.h"

namespace pando {

// The property of a method that decides beside the caller's role.
// base/methods.h explains each kind.
enum class MethodKind { kOwn, kSpansNamespaces, kGivesBack };

// The permission that a caller needs for a method of the protocol.
struct Permission {
  std::string_view method;
  std::optional<Role> role;  // the least role; none: all callers may call it
  MethodKind kind = MethodKind::kOwn;
};

// Returns the permission for a method. An unknown method needs the highest
// role, and counts as spanning all namespaces.
Permission PermissionFor(const std::string& service, const std::string& method);

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_PERMISSIONS_H_
