#ifndef PANDO_CLIENTS_CPP_SRC_ENDPOINT_H_
#define PANDO_CLIENTS_CPP_SRC_ENDPOINT_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "clients/cpp/src/status.h"
#include "pando/tls.h"

namespace pando {
inline namespace client {

// The connection to one pandod: the channel, the token that each call shows,
// and how long a call may take. Every C++ client has one, so that all treat
// addresses, TLS, tokens, proxies and errors alike.
//
// Shared by a client and its watches. Immutable; thread-safe.
class Endpoint {
 public:
  // See ConnectOptions.
  struct Options {
    std::string address;
    std::optional<TlsFiles> tls;
    std::string token;
    absl::Duration timeout;
  };

  // A method of a generated stub.
  template <typename Stub, typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                        Response*);

  // Fails if a file cannot be read. The first call connects.
  static absl::StatusOr<std::shared_ptr<const Endpoint>> Make(Options options);

  const std::string& address() const { return options_.address; }
  const std::string& token() const { return options_.token; }
  absl::Duration timeout() const { return options_.timeout; }
  bool is_unix_socket() const;
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  absl::Time CallDeadline() const { return absl::Now() + options_.timeout; }

  // Sets the credentials and the deadline of a call.
  void Prepare(grpc::ClientContext& context, absl::Time deadline) const;

  // One blocking call.
  template <typename Stub, typename Request, typename Response>
  absl::Status Call(Stub& stub, Method<Stub, Request, Response> method,
                    const Request& request, Response* response,
                    absl::Time deadline) const {
    grpc::ClientContext context;
    Prepare(context, deadline);
    return FromGrpc((stub.*method)(&context, request, response));
  }

 private:
  Endpoint(Options options, std::shared_ptr<grpc::Channel> channel);

  const Options options_;
  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_ENDPOINT_H_
