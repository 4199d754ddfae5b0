#include "clients/cpp/src/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace pando {
inline namespace client {
namespace {

// The server limits tokens, not bytes.
constexpr int kUnlimited = -1;

// What gRPC calls the address: a path is that of a Unix socket.
std::string TargetOf(const std::string& address) {
  return address.starts_with('/') ? "unix:" + address : address;
}

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address) {
  grpc::ChannelArguments args;
  args.SetMaxReceiveMessageSize(kUnlimited);
  args.SetMaxSendMessageSize(kUnlimited);
  // A call is made at most once; to try again is the caller's decision.
  args.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // The connection is the client's own: sessions break apart from each other.
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // The server is on this machine: look for it often when it is away.
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return grpc::CreateCustomChannel(TargetOf(address),
                                   grpc::InsecureChannelCredentials(), args);
}

}  // namespace

Connection::Connection(ConnectOptions options)
    : options_(std::move(options)),
      channel_(MakeChannel(options_.address)),
      prefix_cache_(v1::PrefixCache::NewStub(channel_)),
      page_pool_(v1::PagePool::NewStub(channel_)),
      admin_(v1::Admin::NewStub(channel_)),
      session_(v1::Sessions::NewStub(channel_),
               {.client_name = options_.name,
                .timeout = options_.timeout,
                .on_lost = options_.on_session_lost}) {}

absl::Status Connection::AwaitOpened() {
  const absl::Status status =
      session_.AwaitOpened(absl::Now() + options_.timeout);
  if (status.ok()) return status;
  return WithReason(
      absl::Status(status.code(),
                   absl::StrCat("open a session at ", options_.address, ": ",
                                status.message())),
      ReasonOf(status));
}

absl::StatusOr<uint64_t> Connection::PresentSession() const {
  const uint64_t id = session().id;
  if (id == 0) {
    return absl::UnavailableError(
        absl::StrCat("no session at ", options_.address, " at present"));
  }
  return id;
}

absl::Status Connection::CheckSession(uint64_t session_id) const {
  if (session_id != 0 && session_id == session().id) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError(
          "the session of these locks and pages is lost; drop them"),
      reason::kSessionLost);
}

absl::Status Connection::Unlock(uint64_t session_id,
                                std::span<const uint64_t> lock_ids) {
  if (absl::Status status = CheckSession(session_id); !status.ok()) {
    return status;
  }
  v1::UnlockRequest request;
  request.set_session_id(session_id);
  request.mutable_lock_ids()->Add(lock_ids.begin(), lock_ids.end());
  return Call(*prefix_cache_, &v1::PrefixCache::Stub::Unlock, request).status();
}

}  // namespace client
}  // namespace pando
