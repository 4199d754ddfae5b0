#ifndef PANDO_TOOLS_PANDOCTL_ACCESS_H_
#define PANDO_TOOLS_PANDOCTL_ACCESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/pandoctl/options.h"

namespace pando::ctl {

// What pandod is shown. No gRPC: a replay forks before it uses any.
struct Access {
  // In PEM; all empty: no option names them, and the connection is in the
  // clear.
  std::string ca;
  std::string certificate;
  std::string key;
  std::string token;  // empty: none
};

// Reads the files that the options name. An error names one that cannot be
// read, or is empty.
absl::StatusOr<Access> ReadAccess(const Options& options);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_ACCESS_H_
