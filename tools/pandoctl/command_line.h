#ifndef PANDO_TOOLS_PANDOCTL_COMMAND_LINE_H_
#define PANDO_TOOLS_PANDOCTL_COMMAND_LINE_H_

#include <optional>

#include "tools/pandoctl/options.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {

struct Command {
  absl::Status (*verb)(const Context&) = nullptr;
  Options options;
};

// Reads the command line and the environment. When there is nothing left to do
// (help and completion are printed here, as mistakes are) returns no command,
// and sets what to end with.
std::optional<Command> ParseCommandLine(int argc, const char* const* argv,
                                        int* exit_code);

}  // namespace pando::ctl

#endif  // PANDO_TOOLS_PANDOCTL_COMMAND_LINE_H_
