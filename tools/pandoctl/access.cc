#include "tools/pandoctl/access.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "tools/pandoctl/tokens.h"

namespace pando::ctl {

absl::StatusOr<Access> ReadAccess(const Options& options) {
  Access access;
  for (const auto& [path, text] :
       {std::pair(&options.tls_ca, &access.ca),
        std::pair(&options.tls_certificate, &access.certificate),
        std::pair(&options.tls_key, &access.key),
        std::pair(&options.token_file, &access.token)}) {
    if (path->empty()) continue;
    absl::StatusOr<std::string> read = ReadFile(*path);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  // Of an old and a new token, each in a line of its own, either will do.
  absl::StripAsciiWhitespace(&access.token);
  access.token = access.token.substr(0, access.token.find_first_of("\r\n"));
  return access;
}

}  // namespace pando::ctl
