#include "pando/client.h"

#include <utility>

#include "base/status_macros.h"
#include "clients/cpp/src/connection.h"
#include "clients/cpp/src/convert.h"

namespace pando {
inline namespace client {
Client::Client(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

Client::~Client() { connection_->End(); }

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    ConnectOptions options) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Endpoint> endpoint,
                   Endpoint::Make({.address = options.address,
                                   .tls = options.tls,
                                   .token = options.token,
                                   .timeout = options.timeout}));
  std::unique_ptr<Client> client(new Client(
      std::make_shared<Connection>(std::move(options), std::move(endpoint))));
  RETURN_IF_ERROR(client->connection_->AwaitOpened());
  return client;
}

uint64_t Client::session_id() const { return connection_->session().id; }

PageRoom Client::room() const { return connection_->room(); }

uint64_t Client::epoch() const { return connection_->session().epoch; }

Transport Client::transport() const {
  return connection_->lane().is_open() ? Transport::kLane : Transport::kGrpc;
}

absl::Status Client::why_no_lane() const {
  return connection_->lane().why_not();
}

absl::StatusOr<Lock> Client::TakeLock(std::span<const Token> tokens,
                                      const LockOptions& options) {
  return TakeLock(tokens, options, nullptr);
}

absl::StatusOr<Lock> Client::TakeLock(std::span<const Token> tokens,
                                      const LockOptions& options,
                                      Exchange* exchange) {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  RETURN_IF_ERROR(CheckAfter(options.after, tokens.size()));
  v1::LockResponse response;
  PrefixHandle after = options.after;
  const absl::Status status = connection_->SendAfter(session, after, [&] {
    v1::LockRequest request;
    request.set_session_id(session.id);
    FillPlace(options.ns, after, request);
    Fill(tokens.subspan(after.tokens), request.mutable_tokens());
    absl::Status answered = connection_->Mutate(connection_->prefix_cache(),
                                                &v1::PrefixCache::Stub::Lock,
                                                request, &response, exchange);
    connection_->SettleIfUnknown(answered, request);
    return answered;
  });
  if (!status.ok()) return status;
  return Lock(connection_, session.id, response.lock_id(),
              response.locked_tokens(), FromProto(response.handle()));
}

absl::Status Client::Unlock(std::span<Lock> locks) {
  return Unlock(locks, nullptr);
}

absl::Status Client::Unlock(std::span<Lock> locks, Exchange* exchange) {
  std::vector<uint64_t> ids;
  uint64_t session_id = 0;
  for (const Lock& lock : locks) {
    if (!lock.held()) continue;
    if (lock.connection_.lock() != connection_) {
      return absl::InvalidArgumentError("locks: of another client");
    }
    if (session_id != 0 && lock.session_id() != session_id) {
      return absl::InvalidArgumentError("locks: of more than one session");
    }
    session_id = lock.session_id();
    ids.push_back(lock.id());
  }
  if (ids.empty()) return absl::OkStatus();
  const absl::Status status = connection_->Unlock(session_id, ids, exchange);
  if (status.ok() || ReasonOf(status) == reason::kSessionLost) {
    for (Lock& lock : locks) lock.Forget();
  }
  return status;
}

absl::StatusOr<uint32_t> Client::Evict(uint32_t pages) {
  v1::EvictRequest request;
  request.set_pages(pages);
  ASSIGN_OR_RETURN(const v1::EvictResponse response,
                   connection_->Call(connection_->prefix_cache(),
                                     &v1::PrefixCache::Stub::Evict, request));
  return response.evicted_pages();
}

}  // namespace client
}  // namespace pando
