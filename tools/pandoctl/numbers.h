#ifndef PANDO_TOOLS_PANDOCTL_NUMBERS_H_
#define PANDO_TOOLS_PANDOCTL_NUMBERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "tools/pandoctl/server.h"

namespace pando::ctl {

// Fails when nothing has this number. Where there are too many for pandod to
// list them all, any number is taken to exist.
absl::Status CheckNamespace(Server& server, uint64_t number);
absl::Status CheckSession(Server& server, uint32_t number);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_NUMBERS_H_
