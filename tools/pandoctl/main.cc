// pandoctl: what operators ask a pandod, from the command line.

#include <unistd.h>

#include <cstdio>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "base/default_socket.h"
#include "base/status_macros.h"
#include "base/visible_text.h"
#include "tools/pandoctl/access.h"
#include "tools/pandoctl/command_line.h"
#include "tools/pandoctl/exit_code.h"
#include "tools/pandoctl/style.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

absl::Status Run(const Command& command) {
  const Options& options = command.options;
  ASSIGN_OR_RETURN(Access access, ReadAccess(options));
  Server server(options.address, absl::Seconds(options.timeout_s),
                std::move(access));
  const Output output(options.format);
  return command.verb({server, output, options});
}

int Main(int argc, const char* const* argv) {
  int exit_code = kOk;
  std::optional<Command> command = ParseCommandLine(argc, argv, &exit_code);
  if (!command.has_value()) return exit_code;
  const bool is_named = !command->options.address.empty();
  if (!is_named) command->options.address = DefaultAddress();
  const absl::Status status = Run(*command);
  if (!status.ok()) {
    std::fprintf(stderr, "%s %s\n",
                 Styled(Style::kBad, "pandoctl:", STDERR_FILENO).c_str(),
                 VisibleText(std::string(status.message())).c_str());
  }
  if (absl::IsUnavailable(status) && !is_named) {
    std::fputs(
        "pandoctl: another one is named with --address or PANDO_ADDRESS\n",
        stderr);
  }
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace pando::ctl

int main(int argc, char** argv) { return pando::ctl::Main(argc, argv); }
