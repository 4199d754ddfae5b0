#ifndef PANDO_TOOLS_PANDOCTL_CONFIRM_H_
#define PANDO_TOOLS_PANDOCTL_CONFIRM_H_

#include <string>

#include "absl/status/status.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {

// Returns OK when --yes was given, or the person at the terminal says yes to
// `question`. It is a mistake in usage when there is neither a terminal nor
// --yes.
absl::Status Confirm(const Context& context, const std::string& question);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_CONFIRM_H_
