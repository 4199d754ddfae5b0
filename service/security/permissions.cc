#include "service/security/permissions.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "base/methods.h"

namespace pando {
namespace {

constexpr std::array kPermissions = {
    Permission{"grpc.health.v1.Health/Check", std::nullopt},
#define PANDO_GRPC_METHOD(service, name, role, kind) \
  Permission{"pando.v1." #service "/" #name, Role::role, MethodKind::kind},
#define PANDO_DATA_PATH_METHOD(number, field, service, name, role, kind) \
  PANDO_GRPC_METHOD(service, name, role, kind)
    PANDO_DATA_PATH_METHODS(PANDO_DATA_PATH_METHOD)
        PANDO_GRPC_METHODS(PANDO_GRPC_METHOD)
#undef PANDO_DATA_PATH_METHOD
#undef PANDO_GRPC_METHOD
};

}  // namespace

Permission PermissionFor(const std::string& service,
                         const std::string& method) {
  const std::string name = absl::StrCat(service, "/", method);
  for (const Permission& permission : kPermissions) {
    if (permission.method == name) return permission;
  }
  return {"this method", Role::kAdmin, MethodKind::kSpansNamespaces};
}

}  // namespace pando
