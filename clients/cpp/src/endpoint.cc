#include "clients/cpp/src/endpoint.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <utility>

#include "base/default_socket.h"
#include "base/status_macros.h"
#include "clients/cpp/src/access.h"

namespace pando {
inline namespace client {
namespace {

// There is no limit on the size of messages, because the server limits tokens,
// not bytes.
constexpr int kUnlimited = -1;

// A longer timeout is cut to this one, because an infinite one cannot be added
// to the present time.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

// Returns the address in gRPC's form: a path becomes that of a Unix socket.
std::string TargetOf(const std::string& address) {
  return address.starts_with('/') ? "unix:" + address : address;
}

std::shared_ptr<grpc::Channel> MakeChannel(
    const Endpoint::Options& options, const ChannelCredentials& credentials) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kUnlimited);
  args.SetMaxSendMessageSize(kUnlimited);
  // This library decides which calls are repeated, and how often; not gRPC.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // http_proxy is for the web, not for a pandod.
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The client does not share its connection, so that sessions of several
  // clients break independently.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The server is on this machine, so the client tries often to connect while
  // it is away.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  if (options.tls.has_value() && !options.tls->server_name.empty()) {
    args.SetSslTargetNameOverride(options.tls->server_name);
  }
  return grpc::CreateCustomChannel(TargetOf(options.address), credentials,
                                   args);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Endpoint>> Endpoint::Make(
    Options options) {
  ASSIGN_OR_RETURN(const ChannelCredentials credentials,
                   CredentialsOf(options.tls));
  if (options.address.empty()) options.address = DefaultAddress();
  options.timeout = std::min(options.timeout, kLongest);
  std::shared_ptr<grpc::Channel> channel = MakeChannel(options, credentials);
  return std::shared_ptr<const Endpoint>(
      new Endpoint(std::move(options), std::move(channel)));
}

Endpoint::Endpoint(Options options, std::shared_ptr<grpc::Channel> channel)
    : options_(std::move(options)), channel_(std::move(channel)) {}

bool Endpoint::is_unix_socket() const {
  return TargetOf(options_.address).starts_with("unix:");
}

void Endpoint::Prepare(grpc::ClientContext& context,
                       absl::Time deadline) const {
  if (deadline < absl::InfiniteFuture()) {
    context.set_deadline(absl::ToChronoTime(deadline));
  }
  ShowToken(options_.token, context);
}

}  // namespace client
}  // namespace pando
