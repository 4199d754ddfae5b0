#include "service/security/tls_credentials.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/ssl.h>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace pando {
namespace {

constexpr unsigned kLookForChangesSeconds = 1;

absl::Status Error(const char* option, const std::string& file,
                   const char* expected) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is '%s', which is not %s", option, file, expected));
}

// gRPC would start with such files, and refuse every client.
absl::Status Check(const TlsFiles& files) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (SSL_CTX_use_certificate_chain_file(context.get(),
                                         files.certificate.c_str()) != 1) {
    return Error("tls-certificate", files.certificate, "a certificate in PEM");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(),
                                  SSL_FILETYPE_PEM) != 1) {
    return Error("tls-key", files.key, "the key of tls-certificate in PEM");
  }
  if (SSL_CTX_load_verify_locations(context.get(), files.client_ca.c_str(),
                                    nullptr) != 1) {
    return Error("tls-client-ca", files.client_ca, "a certificate in PEM");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files) {
  if (absl::Status good = Check(files); !good.ok()) return good;
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files.key, files.certificate, files.client_ca,
          kLookForChangesSeconds));
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  options.set_cert_request_type(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace pando
