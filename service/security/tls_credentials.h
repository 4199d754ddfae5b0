#ifndef PANDO_SERVICE_SECURITY_TLS_CREDENTIALS_H_
#define PANDO_SERVICE_SECURITY_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// The files, PEM, of a server that shows a certificate and asks for one.
struct TlsFiles {
  std::string certificate;  // with its chain
  std::string key;
  std::string client_ca;  // who signs the clients' certificates
};

// For connections whose both ends show certificates. The files are looked at
// for each connection. While changed ones are no good together, those of before
// count, and an error in the log names the one at fault, as this one does now.
// Outlives the server.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeTlsCredentials(
    const TlsFiles& files);

}  // namespace pando

#endif  // PANDO_SERVICE_SECURITY_TLS_CREDENTIALS_H_
