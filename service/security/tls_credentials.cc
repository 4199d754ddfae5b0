#include "service/security/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "os/logging/log.h"
#include "service/security/file_version.h"

namespace pando {
namespace {

absl::Status Error(const char* option, const std::string& file,
                   const char* expected) {
  ERR_clear_error();  // gRPC uses OpenSSL on this thread too
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is '%s', which is not %s", option, file, expected));
}

absl::Status CheckReadable(const char* option, const std::string& file) {
  if (access(file.c_str(), R_OK) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is '%s', which cannot be read: %s", option, file,
                      std::strerror(errno)));
}

// Checks the files here, because gRPC would start with bad files and then
// refuse every client.
absl::Status Check(const TlsFiles& files) {
  RETURN_IF_ERROR(CheckReadable("tls-certificate", files.certificate));
  RETURN_IF_ERROR(CheckReadable("tls-key", files.key));
  RETURN_IF_ERROR(CheckReadable("tls-client-ca", files.client_ca));
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

std::string Read(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Credentials that follow changes of their files. After a key that does not
// fit, gRPC's own ones fail until the files change again. The ones of its C
// library, which this class uses, keep the old files.
class FollowingCredentials final : public grpc::ServerCredentials {
 public:
  explicit FollowingCredentials(TlsFiles files)
      : files_(std::move(files)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
                &FollowingCredentials::BeforeConnection, this))) {}
  ~FollowingCredentials() override {
    grpc_server_credentials_release(credentials_);
  }

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  using Versions = std::array<FileVersion, 3>;

  int AddPortToServer(const std::string& address,
                      grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC calls this on any of its threads.
  static grpc_ssl_certificate_config_reload_status BeforeConnection(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<FollowingCredentials*>(self)->Refresh(config);
  }

  grpc_ssl_certificate_config_reload_status Refresh(
      grpc_ssl_server_certificate_config** config) {
    absl::MutexLock hold(&mutex_);
    const Versions versions = {VersionOf(files_.certificate),
                               VersionOf(files_.key),
                               VersionOf(files_.client_ca)};
    if (versions == seen_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    seen_ = versions;
    if (absl::Status good = Check(files_); !good.ok()) {
      Log(LogLevel::kError, "certificates stay as they are",
          {{"error", good.message()}});
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const std::string certificate = Read(files_.certificate);
    const std::string key = Read(files_.key);
    const std::string client_ca = Read(files_.client_ca);
    const grpc_ssl_pem_key_cert_pair pair = {key.c_str(), certificate.c_str()};
    *config =
        grpc_ssl_server_certificate_config_create(client_ca.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsFiles files_;
  absl::Mutex mutex_;
  Versions seen_ ABSL_GUARDED_BY(mutex_);
  grpc_server_credentials* const credentials_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files) {
  RETURN_IF_ERROR(Check(files));
  return std::make_shared<FollowingCredentials>(files);
}

}  // namespace pando
