#include "tools/pandoctl/access.h"

#include <grpcpp/security/credentials.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "tools/pandoctl/tokens.h"

namespace pando::ctl {
namespace {

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ReadTls(
    const Options& options) {
  if (options.tls_ca.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions files;
  for (const auto& [path, text] :
       {std::pair(&options.tls_ca, &files.pem_root_certs),
        std::pair(&options.tls_certificate, &files.pem_cert_chain),
        std::pair(&options.tls_key, &files.pem_private_key)}) {
    absl::StatusOr<std::string> read = ReadFile(*path);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  return grpc::SslCredentials(files);
}

}  // namespace

absl::StatusOr<Access> ReadAccess(const Options& options) {
  Access access;
  auto credentials = ReadTls(options);
  if (!credentials.ok()) return credentials.status();
  access.credentials = *std::move(credentials);
  if (options.token_file.empty()) return access;
  absl::StatusOr<std::string> text = ReadFile(options.token_file);
  if (!text.ok()) return text.status();
  // Of an old and a new token either will do.
  const std::vector<std::string> lines =
      absl::StrSplit(absl::StripAsciiWhitespace(*text), '\n');
  access.token = std::string(absl::StripAsciiWhitespace(lines.front()));
  return access;
}

}  // namespace pando::ctl
