#include "service/security/permissions.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace pando {
namespace {

constexpr bool kSpansNamespaces = true;

// MatchPrefix with lock = true needs a worker: AccessControl sees the request.
constexpr std::array kPermissions = {
    Permission{"grpc.health.v1.Health/Check", std::nullopt},
    Permission{"pando.v1.PrefixCache/MatchPrefix", Role::kReader},
    Permission{"pando.v1.PrefixCache/MatchPrefixes", Role::kReader},
    Permission{"pando.v1.PrefixCache/Insert", Role::kWorker},
    Permission{"pando.v1.PrefixCache/Lock", Role::kWorker},
    Permission{"pando.v1.PrefixCache/Unlock", Role::kWorker},
    Permission{"pando.v1.PrefixCache/Evict", Role::kAdmin, kSpansNamespaces},
    Permission{"pando.v1.PagePool/DescribePool", Role::kReader},
    Permission{"pando.v1.PagePool/AttachPool", Role::kWorker},
    Permission{"pando.v1.PagePool/AllocatePages", Role::kWorker},
    Permission{"pando.v1.PagePool/FreePages", Role::kWorker},
    Permission{"pando.v1.DataPath/OpenLane", Role::kWorker},
    // Each call in it needs what it needs by itself.
    Permission{"pando.v1.DataPath/Batch", Role::kReader},
    Permission{"pando.v1.Sessions/Open", Role::kWorker},
    Permission{"pando.v1.Sessions/End", Role::kWorker},
    Permission{"pando.v1.Events/Watch", Role::kReader, kSpansNamespaces},
    Permission{"pando.v1.Admin/GetStats", Role::kReader},
    Permission{"pando.v1.Admin/ListNamespaces", Role::kReader,
               kSpansNamespaces},
    Permission{"pando.v1.Admin/ListSessions", Role::kReader, kSpansNamespaces},
    Permission{"pando.v1.Admin/ListLocks", Role::kReader, kSpansNamespaces},
    Permission{"pando.v1.Admin/ListQuarantine", Role::kReader,
               kSpansNamespaces},
    Permission{"pando.v1.Admin/ExplainMatch", Role::kReader, kSpansNamespaces},
    Permission{"pando.v1.Admin/DumpTree", Role::kReader, kSpansNamespaces},
    Permission{"pando.v1.Admin/Flush", Role::kAdmin, kSpansNamespaces},
    Permission{"pando.v1.Admin/SetEvictionPolicy", Role::kAdmin,
               kSpansNamespaces},
    Permission{"pando.v1.Admin/ReleaseLocks", Role::kAdmin, kSpansNamespaces},
    Permission{"pando.v1.Admin/FreeQuarantine", Role::kAdmin, kSpansNamespaces},
    Permission{"pando.v1.Admin/CheckInvariants", Role::kAdmin,
               kSpansNamespaces},
    Permission{"pando.v1.Admin/Drain", Role::kAdmin, kSpansNamespaces},
};

}  // namespace

Permission PermissionFor(const std::string& service,
                         const std::string& method) {
  const std::string name = absl::StrCat(service, "/", method);
  for (const Permission& permission : kPermissions) {
    if (permission.method == name) return permission;
  }
  return {"this method", Role::kAdmin, kSpansNamespaces};
}

}  // namespace pando
