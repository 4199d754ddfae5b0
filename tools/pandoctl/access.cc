#include "tools/pandoctl/access.h"

#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/pandoctl/tokens.h"

namespace pando::ctl {

absl::StatusOr<Access> ReadAccess(const Options& options) {
  Access access;
  for (const auto& [option, path, text] :
       {std::tuple("--tls-ca", &options.tls_ca, &access.ca),
        std::tuple("--tls-certificate", &options.tls_certificate,
                   &access.certificate),
        std::tuple("--tls-key", &options.tls_key, &access.key),
        std::tuple("--token-file", &options.token_file, &access.token)}) {
    if (!path->has_value()) continue;
    absl::StatusOr<std::string> read = ReadFile(**path);
    if (!read.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": ", read.status().message()));
    }
    if (absl::StripAsciiWhitespace(*read).empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": ", **path, " is empty"));
    }
    *text = *std::move(read);
  }
  // While a token is replaced, the file may hold the new one and the old one, a
  // line each. Both are good, so the first is sent.
  absl::StripAsciiWhitespace(&access.token);
  access.token = access.token.substr(0, access.token.find_first_of("\r\n"));
  return access;
}

}  // namespace pando::ctl
