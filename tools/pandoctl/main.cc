// pandoctl: what operators ask a pandod, from the command line.

#include <cstdio>
#include <string>

#include "absl/time/time.h"
#include "tools/pandoctl/command_line.h"
#include "tools/pandoctl/exit_code.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

int Main(int argc, const char* const* argv) {
  int exit_code = kOk;
  const std::optional<Command> command =
      ParseCommandLine(argc, argv, &exit_code);
  if (!command.has_value()) return exit_code;
  const Options& options = command->options;
  Server server(options.address, absl::Seconds(options.timeout_s));
  const Output output(options.format);
  const absl::Status status = command->verb({server, output, options});
  if (!status.ok()) {
    std::fprintf(stderr, "pandoctl: %s\n",
                 std::string(status.message()).c_str());
  }
  return ExitCodeOf(status);
}

}  // namespace
}  // namespace pando::ctl

int main(int argc, char** argv) { return pando::ctl::Main(argc, argv); }
