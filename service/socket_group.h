#ifndef PANDO_SERVICE_SOCKET_GROUP_H_
#define PANDO_SERVICE_SOCKET_GROUP_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// Returns the group that a name or a number stands for, or none if `name` is
// empty. Returns NOT_FOUND if there is no such group.
absl::StatusOr<std::optional<gid_t>> SocketGroup(const std::string& name);

}  // namespace pando

#endif  // PANDO_SERVICE_SOCKET_GROUP_H_
