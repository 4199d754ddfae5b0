#ifndef PANDO_SERVICE_SECURITY_PERMISSIONS_H_
#define PANDO_SERVICE_SECURITY_PERMISSIONS_H_

#include <optional>
#include <string>
#include <string_view>

#include "service/security/credential.h"

namespace pando {

// What a method of the protocol needs of its caller.
struct Permission {
  std::string_view method;
  std::optional<Role> role;  // at least; none: anybody may call it
  // It shows or changes what is in all namespaces.
  bool spans_namespaces = false;
};

// Of one that is not known: all.
Permission PermissionFor(const std::string& service, const std::string& method);

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_PERMISSIONS_H_
