#include "clients/cpp/src/access.h"

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace pando {
inline namespace client {
namespace {

absl::Status ReadFile(const std::string& path, std::string& text) {
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  // An empty file is an error, because gRPC would trust the system's
  // authorities instead.
  if (!read.good()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tls: ", path, " cannot be read, or is empty"));
  }
  text = read.str();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ChannelCredentials> CredentialsOf(
    const std::optional<TlsFiles>& tls) {
  if (!tls.has_value()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions files;
  for (absl::Status status : {ReadFile(tls->ca, files.pem_root_certs),
                              ReadFile(tls->certificate, files.pem_cert_chain),
                              ReadFile(tls->key, files.pem_private_key)}) {
    if (!status.ok()) return status;
  }
  return grpc::SslCredentials(files);
}

void ShowToken(const std::string& token, grpc::ClientContext& context) {
  if (!token.empty()) {
    context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
  }
}

}  // namespace client
}  // namespace pando
