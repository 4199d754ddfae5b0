#ifndef PANDO_TOOLS_PANDOCTL_ACCESS_H_
#define PANDO_TOOLS_PANDOCTL_ACCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "tools/pandoctl/options.h"

namespace grpc {
class ChannelCredentials;
}

namespace pando::ctl {

// What pandod is shown.
struct Access {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::string token;  // empty: none
};

// Reads the files that the options name. An error names one that cannot be
// read.
absl::StatusOr<Access> ReadAccess(const Options& options);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_ACCESS_H_
