#include "tools/pandoctl/access.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/pandoctl/tokens.h"

namespace pando::ctl {
namespace {

// Reads the file that an option names.
absl::StatusOr<std::string> ReadNamed(const char* option,
                                      const std::string& path) {
  absl::StatusOr<std::string> read = ReadFile(path);
  if (!read.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", read.status().message()));
  }
  if (absl::StripAsciiWhitespace(*read).empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": ", path, " is empty"));
  }
  return read;
}

}  // namespace

absl::StatusOr<Access> ReadAccess(const Options& options) {
  Access access;
  if (options.tls_ca.has_value()) {
    // The command line takes these three together, or none. The client reads
    // them itself; only here is it known which option named a bad one.
    access.tls = TlsFiles{.ca = *options.tls_ca,
                          .certificate = *options.tls_certificate,
                          .key = *options.tls_key};
    RETURN_IF_ERROR(ReadNamed("--tls-ca", access.tls->ca).status());
    RETURN_IF_ERROR(
        ReadNamed("--tls-certificate", access.tls->certificate).status());
    RETURN_IF_ERROR(ReadNamed("--tls-key", access.tls->key).status());
  }
  if (options.token_file.has_value()) {
    ASSIGN_OR_RETURN(access.token,
                     ReadNamed("--token-file", *options.token_file));
  }
  // While a token is replaced, the file may hold the new one and the old one, a
  // line each. Both are good, so the first is sent.
  absl::StripAsciiWhitespace(&access.token);
  access.token = access.token.substr(0, access.token.find_first_of("\r\n"));
  return access;
}

}  // namespace pando::ctl
