#ifndef PANDO_TOOLS_PANDOCTL_CONFIRM_H_
#define PANDO_TOOLS_PANDOCTL_CONFIRM_H_

#include <string>

#include "absl/status/status.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {

// OK when --yes was given, or the person at the terminal says yes to
// `question`. Without a terminal and without --yes a mistake in usage.
absl::Status Confirm(const Context& context, const std::string& question);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_CONFIRM_H_
