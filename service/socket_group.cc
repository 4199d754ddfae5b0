#include "service/socket_group.h"

#include <grp.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace pando {

absl::StatusOr<std::optional<gid_t>> SocketGroup(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (const struct group* known = getgrnam(name.c_str())) return known->gr_gid;
  gid_t group = 0;
  if (absl::SimpleAtoi(name, &group)) return group;
  return absl::NotFoundError(
      absl::StrCat("socket-group is '", name, "'; there is no such group"));
}

}  // namespace pando
