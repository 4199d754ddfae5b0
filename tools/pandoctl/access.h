#ifndef PANDO_TOOLS_PANDOCTL_ACCESS_H_
#define PANDO_TOOLS_PANDOCTL_ACCESS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "pando/tls.h"
#include "tools/pandoctl/options.h"

namespace pando::ctl {

// The credentials that pandod is shown.
struct Access {
  // Unset: the connection is in the clear.
  std::optional<TlsFiles> tls;
  std::string token;  // empty: none
};

// Reads the files that the options name. An error names the option whose file
// cannot be read or is empty.
absl::StatusOr<Access> ReadAccess(const Options& options);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_ACCESS_H_
