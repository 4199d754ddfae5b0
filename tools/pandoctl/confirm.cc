#include "tools/pandoctl/confirm.h"

#include <unistd.h>

#include <iostream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace pando::ctl {

absl::Status Confirm(const Context& context, const std::string& question) {
  if (context.options.yes) return absl::OkStatus();
  if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
    return absl::InvalidArgumentError(
        absl::StrCat(question,
                     " Say so with --yes where there is no terminal "
                     "to ask on"));
  }
  std::cerr << question << " (" << context.server.address() << ") [y/N] "
            << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  absl::AsciiStrToLower(&answer);
  if (answer == "y" || answer == "yes") return absl::OkStatus();
  return absl::CancelledError("nothing was done");
}

}  // namespace pando::ctl
