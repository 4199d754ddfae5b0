#include "pando/client.h"

#include <utility>

#include "clients/cpp/src/connection.h"
#include "clients/cpp/src/convert.h"

namespace pando {
inline namespace client {
namespace {

// A message that keeps its memory from call to call: prompts are long, and
// allocating them anew would cost more than sending them. One per thread, so
// that a call shares it with nobody.
template <typename Message>
Message& Reused() {
  thread_local Message message;
  message.Clear();
  return message;
}

v1::LockAction ToProto(LockAction action) {
  switch (action) {
    case LockAction::kKeep:
      return v1::LOCK_ACTION_UNSPECIFIED;
    case LockAction::kRelock:
      return v1::LOCK_ACTION_RELOCK;
    case LockAction::kUnlock:
      return v1::LOCK_ACTION_UNLOCK;
  }
  return v1::LOCK_ACTION_UNSPECIFIED;
}

}  // namespace

Client::Client(std::shared_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

Client::~Client() { connection_->End(); }

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    ConnectOptions options) {
  std::unique_ptr<Client> client(
      new Client(std::make_shared<Connection>(std::move(options))));
  if (absl::Status status = client->connection_->AwaitOpened(); !status.ok()) {
    return status;
  }
  return client;
}

uint64_t Client::session_id() const { return connection_->session().id; }

uint64_t Client::epoch() const { return connection_->session().epoch; }

absl::StatusOr<Match> Client::MatchPrefix(std::span<const Token> tokens,
                                          const MatchOptions& options) {
  auto& request = Reused<v1::MatchPrefixRequest>();
  auto& response = Reused<v1::MatchPrefixResponse>();
  uint64_t session_id = 0;
  if (options.lock || options.reserve_tokens > 0) {
    const absl::StatusOr<uint64_t> present = connection_->PresentSession();
    if (!present.ok()) return present.status();
    session_id = *present;
  }
  request.set_session_id(session_id);
  if (IsSet(options.ns)) ToProto(options.ns, request.mutable_namespace_());
  Fill(tokens, request.mutable_tokens());
  if (options.max_tokens) request.set_max_tokens(*options.max_tokens);
  request.set_lock(options.lock);
  request.set_reserve_tokens(options.reserve_tokens);
  if (!options.touch) request.set_touch(false);

  if (absl::Status status = connection_->CallInto(
          connection_->prefix_cache(), &v1::PrefixCache::Stub::MatchPrefix,
          request, &response);
      !status.ok()) {
    return status;
  }
  Match match;
  match.matched_tokens = response.matched_tokens();
  match.page_ids = ToVector(response.page_ids());
  if (response.lock_id() != 0) {
    match.lock = Lock(connection_, session_id, response.lock_id(),
                      response.matched_tokens());
  }
  match.reserved = {.session_id = session_id,
                    .ids = ToVector(response.reserved_page_ids())};
  return match;
}

absl::StatusOr<InsertResult> Client::Insert(std::span<const Token> tokens,
                                            std::span<const PageId> page_ids,
                                            const InsertOptions& options) {
  Lock* const lock = options.lock;
  if (lock != nullptr && !lock->held()) {
    return absl::InvalidArgumentError("InsertOptions.lock: holds nothing");
  }
  if (lock != nullptr && lock->connection_.lock() != connection_) {
    return absl::InvalidArgumentError("InsertOptions.lock: another client's");
  }
  if ((lock != nullptr) == (options.session_id != 0)) {
    return absl::InvalidArgumentError(
        "InsertOptions: give either lock or session_id");
  }
  const uint64_t session_id =
      lock != nullptr ? lock->session_id() : options.session_id;
  if (absl::Status status = connection_->CheckSession(session_id);
      !status.ok()) {
    if (lock != nullptr) lock->ForgetIfGone(status);
    return status;
  }

  auto& request = Reused<v1::InsertRequest>();
  auto& response = Reused<v1::InsertResponse>();
  request.set_session_id(session_id);
  if (lock != nullptr) request.set_lock_id(lock->id());
  if (IsSet(options.ns)) ToProto(options.ns, request.mutable_namespace_());
  Fill(tokens, request.mutable_tokens());
  Fill(page_ids, request.mutable_page_ids());
  request.set_lock_action(ToProto(options.lock_action));
  request.set_keep_duplicates(options.keep_duplicates);
  Fill(options.free_page_ids, request.mutable_free_page_ids());
  request.set_prompt_tokens(options.prompt_tokens);

  if (absl::Status status = connection_->CallInto(
          connection_->prefix_cache(), &v1::PrefixCache::Stub::Insert, request,
          &response);
      !status.ok()) {
    if (lock != nullptr) lock->ForgetIfGone(status);
    return status;
  }
  if (options.lock_action == LockAction::kUnlock) lock->Forget();
  if (options.lock_action == LockAction::kRelock) {
    lock->tokens_ += page_ids.size() * connection_->session().page_tokens;
  }
  return InsertResult{
      .existing_tokens = response.existing_tokens(),
      .canonical_page_ids = ToVector(response.canonical_page_ids()),
      .freed_duplicates = response.freed_duplicates()};
}

absl::StatusOr<Lock> Client::TakeLock(std::span<const Token> tokens,
                                      const Namespace& ns) {
  const absl::StatusOr<uint64_t> session_id = connection_->PresentSession();
  if (!session_id.ok()) return session_id.status();
  v1::LockRequest request;
  request.set_session_id(*session_id);
  if (IsSet(ns)) ToProto(ns, request.mutable_namespace_());
  Fill(tokens, request.mutable_tokens());
  const absl::StatusOr<v1::LockResponse> response = connection_->Call(
      connection_->prefix_cache(), &v1::PrefixCache::Stub::Lock, request);
  if (!response.ok()) return response.status();
  return Lock(connection_, *session_id, response->lock_id(),
              response->locked_tokens());
}

absl::Status Client::Unlock(std::span<Lock> locks) {
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
  const absl::Status status = connection_->Unlock(session_id, ids);
  if (status.ok() || ReasonOf(status) == reason::kSessionLost) {
    for (Lock& lock : locks) lock.Forget();
  }
  return status;
}

absl::StatusOr<uint32_t> Client::Evict(uint32_t pages) {
  v1::EvictRequest request;
  request.set_pages(pages);
  const absl::StatusOr<v1::EvictResponse> response = connection_->Call(
      connection_->prefix_cache(), &v1::PrefixCache::Stub::Evict, request);
  if (!response.ok()) return response.status();
  return response->evicted_pages();
}

}  // namespace client
}  // namespace pando
