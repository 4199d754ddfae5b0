#ifndef PANDO_TOOLS_PANDOCTL_NUMBERS_H_
#define PANDO_TOOLS_PANDOCTL_NUMBERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tools/pandoctl/server.h"

namespace pando::ctl {

// Not OK: nothing has this number. Of so many that pandod does not list them
// all, any may be there.
absl::Status CheckNamespace(Server& server, uint64_t number);
absl::Status CheckSession(Server& server, uint32_t number);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_NUMBERS_H_
