#ifndef PANDO_SERVICE_SECURITY_TLS_CREDENTIALS_H_
#define PANDO_SERVICE_SECURITY_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// The PEM files of a server that has a certificate and requires one of its
// clients.
struct TlsFiles {
  std::string certificate;  // with its chain
  std::string key;
  std::string client_ca;  // of the authority that signs clients' certificates
};

// Makes credentials for mutual TLS. An error names the file at fault. The files
// are checked for changes at each connection. While changed files do not fit
// together, the old ones stay in use, and the log names the file at fault. The
// result must outlive the server.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files);

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_TLS_CREDENTIALS_H_
