#ifndef PANDO_CLIENTS_CPP_SRC_ACCESS_H_
#define PANDO_CLIENTS_CPP_SRC_ACCESS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "pando/tls.h"

namespace pando {
inline namespace client {

using ChannelCredentials = std::shared_ptr<grpc::ChannelCredentials>;

// Returns the credentials of a gRPC channel; without `tls` the connection is
// not encrypted. An error names the file that cannot be read, or is empty.
absl::StatusOr<ChannelCredentials> CredentialsOf(
    const std::optional<TlsFiles>& tls);

// Adds the bearer token to a call; an empty token adds nothing.
void ShowToken(const std::string& token, grpc::ClientContext& context);

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_ACCESS_H_
