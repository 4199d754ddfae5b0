#ifndef PANDO_CLIENTS_CPP_SRC_CONNECTION_H_
#define PANDO_CLIENTS_CPP_SRC_CONNECTION_H_

#include <google/protobuf/repeated_field.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "clients/cpp/src/client_lane.h"
#include "clients/cpp/src/convert.h"
#include "clients/cpp/src/endpoint.h"
#include "clients/cpp/src/exchange.h"
#include "clients/cpp/src/lane_methods.h"
#include "clients/cpp/src/memory_socket.h"
#include "clients/cpp/src/session_stream.h"
#include "clients/cpp/src/settlements.h"
#include "clients/cpp/src/status.h"
#include "pando/client.h"
#include "pando/operator.h"
#include "pando/v1/admin.grpc.pb.h"
#include "pando/v1/blocks.grpc.pb.h"
#include "pando/v1/data_path.grpc.pb.h"
#include "pando/v1/pool.grpc.pb.h"
#include "pando/v1/prefix_cache.grpc.pb.h"

namespace pando {
inline namespace client {

// Returns INVALID_ARGUMENT if the handle covers more than `tokens` tokens.
absl::Status CheckAfter(const PrefixHandle& after, size_t tokens);

// The endpoint, the stubs and the session of one Client.
//
// Owned by Client; locks refer to it weakly. Thread-safe.
class Connection {
 public:
  template <typename Stub, typename Request, typename Response>
  using Method = Endpoint::Method<Stub, Request, Response>;

  Connection(ConnectOptions options, std::shared_ptr<const Endpoint> endpoint);

  // Waits for the first session, at most for the timeout of a call.
  absl::Status AwaitOpened();
  // Ends the session. Later calls fail.
  void End() {
    session_.End();
    settlements_.End();
  }

  Session session() const { return session_.session(); }
  // Returns the present session, or UNAVAILABLE while there is none.
  absl::StatusOr<Session> PresentSession() const;
  // Returns OK while this session is the present one, else SESSION_LOST.
  absl::Status CheckSession(uint64_t session_id) const;

  // Says that the block memory was attached for this session.
  void MemoryAttached(uint64_t session_id) { memory_of_.store(session_id); }
  // Returns the present session. Returns SESSION_LOST if the block memory was
  // last attached for an earlier session, because the places of this session
  // may lie in other memory.
  absl::StatusOr<Session> SessionOfMemory() const;

  // One blocking call, for example
  // Call(prefix_cache(), &v1::PrefixCache::Stub::Evict, request).
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub,
                                Method<Stub, Request, Response> method,
                                const Request& request) {
    Response response;
    RETURN_IF_ERROR(CallInto(stub, method, request, &response, CallDeadline()));
    return response;
  }

  // Does the same with a response that the caller may reuse, on the lane if
  // there is one. `exchange` is the first attempt of a call that is part of a
  // batch, else null.
  template <typename Stub, typename Request, typename Response>
  absl::Status CallInto(Stub& stub, Method<Stub, Request, Response> method,
                        const Request& request, Response* response,
                        absl::Time deadline, Exchange* exchange = nullptr) {
    if constexpr (OnLane<Request>) {
      const std::optional<absl::Status> answered =
          CallOnLane(request, {}, response, deadline, exchange);
      if (answered.has_value()) return *answered;
    }
    return endpoint_->Call(stub, method, request, response, deadline);
  }

  // Does the same for a request whose tokens are not in its message.
  template <typename Stub, typename Request, typename Response>
  absl::Status CallInto(Stub& stub, Method<Stub, Request, Response> method,
                        Request& request, std::span<const Token> tokens,
                        Response* response, absl::Time deadline,
                        Exchange* exchange) {
    const std::optional<absl::Status> answered =
        CallOnLane(request, {Request::kTokensFieldNumber, tokens}, response,
                   deadline, exchange);
    if (answered.has_value()) return *answered;
    Fill(tokens, request.mutable_tokens());
    const absl::Status status =
        endpoint_->Call(stub, method, request, response, deadline);
    request.clear_tokens();
    return status;
  }

  // Makes a call that changes something in its session. If the connection
  // breaks, the call is repeated with the same request id, so that the server
  // acts only once.
  template <typename Stub, typename Request, typename Response>
  absl::Status Mutate(Stub& stub, Method<Stub, Request, Response> method,
                      Request& request, Response* response,
                      Exchange* exchange = nullptr) {
    const absl::Time deadline = CallDeadline();
    request.set_request_id(NextRequestId(exchange));
    return Repeat(request.session_id(), deadline, [&] {
      return CallInto(stub, method, request, response, deadline, exchange);
    });
  }

  // Must be called after a call that ended with `status`. If the server may
  // have acted on the call without an answer, this gives back in the background
  // what the call has locked or reserved. `request` is that of the call, with
  // its request id; `tokens` are those that are not in it.
  void SettleIfUnknown(const absl::Status& status,
                       const v1::MatchPrefixRequest& request,
                       std::span<const Token> tokens);
  void SettleIfUnknown(const absl::Status& status,
                       const v1::LockRequest& request);
  void SettleIfUnknown(const absl::Status& status,
                       const v1::AllocatePagesRequest& request);
  // Must be called after a call that ended with `status`, has to be carried
  // out, and is safe to repeat. If there was no answer, this repeats the call
  // in the background.
  template <typename Stub, typename Request, typename Response>
  void RepeatIfUnknown(const absl::Status& status, Stub& stub,
                       Method<Stub, Request, Response> method,
                       const Request& request) {
    if (!MayHaveActed(status)) return;
    settlements_.Add([this, &stub, method, request] {
      Response none;
      return Repeated(stub, method, request, &none);
    });
  }

  // Makes attempts until one does not end with a broken connection. Gives up
  // when the session is lost, `deadline` has come, or most of a second has
  // passed.
  absl::Status Repeat(uint64_t session_id, absl::Time deadline,
                      const std::function<absl::Status()>& attempt) const {
    return Repeat(deadline, attempt, [&] { return CheckSession(session_id); });
  }
  // Does the same as long as `check` returns OK.
  static absl::Status Repeat(absl::Time deadline,
                             const std::function<absl::Status()>& attempt,
                             const std::function<absl::Status()>& check);

  // Makes a call that returns a token (AttachPool, AttachMemory or OpenLane),
  // and shows the token at the memory socket. Repeats both if pandod dies
  // before it has answered, as long as `check` returns OK.
  template <typename Stub, typename Request, typename Grant>
  absl::StatusOr<ReceivedMemory> FetchMemory(
      Stub& stub, Method<Stub, Request, Grant> method, const Request& request,
      const std::function<absl::Status()>& check) {
    ReceivedMemory memory;
    const auto attempt = [&]() -> absl::Status {
      ASSIGN_OR_RETURN(const Grant grant, Call(stub, method, request));
      absl::StatusOr<ReceivedMemory> received =
          ReceiveMemory(grant.memory_socket(), grant.token(), timeout());
      if (!received.ok()) return AsUnanswered(received.status());
      memory = *std::move(received);
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(Repeat(CallDeadline(), attempt, check));
    return memory;
  }

  // Makes a call that begins after a handle. If the handle is gone, resets
  // `after` and makes the call again, from the start of the prompt.
  absl::Status SendAfter(const Session& session, PrefixHandle& after,
                         const std::function<absl::Status()>& send) const;

  // Sends the requests of these exchanges in one call, and sets the answer of
  // each. If that call fails, no answer is set, and the calls are then made one
  // by one.
  void ExchangeTogether(std::span<Exchange* const> exchanges);

  // Returns a request id that no other call of the session has. It is not zero.
  uint64_t NextRequestId();
  // Does the same, but a call in a batch keeps the id of its exchange.
  // `exchange` is null outside a batch.
  uint64_t NextRequestId(Exchange* exchange) {
    if (exchange == nullptr) return NextRequestId();
    return exchange->RequestId([this] { return NextRequestId(); });
  }
  absl::Time CallDeadline() const { return endpoint_->CallDeadline(); }

  // Releases locks of one session.
  absl::Status Unlock(uint64_t session_id, std::span<const uint64_t> lock_ids,
                      Exchange* exchange = nullptr);
  // Releases a lock that the caller will not release again: if there is no
  // answer, tries again in the background.
  void Abandon(uint64_t session_id, uint64_t lock_id);

  // Records the room in the pool that an answer reports.
  template <typename Response>
  void TakeRoom(const Response& response) {
    room_ = PageRoom{.free = response.free_pages(),
                     .evictable = response.evictable_pages()};
  }
  PageRoom room() const { return room_; }

  // Keeps descriptors of another session's pool open until the client ends. For
  // pandod, a process that holds them is a writer of that session.
  void Keep(std::vector<UniqueFd> shards);

  v1::PrefixCache::Stub& prefix_cache() { return *prefix_cache_; }
  v1::PagePool::Stub& page_pool() { return *page_pool_; }
  v1::Blocks::Stub& blocks() { return *blocks_; }
  v1::Sessions::Stub& sessions() { return *sessions_; }
  v1::Admin::Stub& admin() { return *admin_; }
  Operator& operators() { return operator_; }
  const ClientLane& lane() const { return lane_; }
  absl::Duration timeout() const { return endpoint_->timeout(); }

 private:
  // Returns UNAVAILABLE for the errors at the memory socket that a dying pandod
  // causes: nothing answers, or the next pandod answers and does not know the
  // token. Returns other errors unchanged.
  static absl::Status AsUnanswered(const absl::Status& status);
  // Makes a call on the lane. Returns none if it must go over gRPC.
  template <typename Request, typename Response>
  std::optional<absl::Status> CallOnLane(const Request& request,
                                         const PackedTokens& tokens,
                                         Response* response,
                                         absl::Time deadline,
                                         Exchange* exchange) {
    const LaneCallShape shape = lane_.ShapeOf(request, tokens);
    if (exchange != nullptr) {
      std::optional<absl::Status> answered =
          exchange->Take(shape, request, tokens, response, deadline);
      if (answered.has_value()) return answered;
    }
    std::optional<lane::Call> call = lane_.Prepare(shape, request, tokens);
    if (!call.has_value()) return std::nullopt;
    call->Submit();
    return ClientLane::Await(*call, response, deadline);
  }

  // Asks for a lane, if the options and the address allow one.
  void OpenLane(const Session& session);

  // The limit of each attempt of a call that is repeated in the background: the
  // end of the client waits for the attempt under way.
  static constexpr absl::Duration kAttempt = absl::Milliseconds(500);

  // Makes one attempt to repeat a call in the background. Returns SESSION_LOST
  // once its session is lost.
  template <typename Stub, typename Request, typename Response>
  absl::Status Repeated(Stub& stub, Method<Stub, Request, Response> method,
                        const Request& request, Response* response) {
    RETURN_IF_ERROR(CheckSession(request.session_id()));
    return CallInto(stub, method, request, response,
                    absl::Now() + std::min(endpoint_->timeout(), kAttempt));
  }
  // Gives back a lock, if there is one, and pages. `free_id` must be the same
  // in each attempt for the same pages: a second free would take pages that the
  // session may have reserved again.
  absl::Status GiveBack(
      uint64_t session_id, uint64_t lock_id,
      const google::protobuf::RepeatedField<uint32_t>& page_ids,
      uint64_t free_id);

  std::atomic<uint64_t> memory_of_ = 0;  // a session; 0 if none was attached
  const ConnectOptions options_;
  const std::shared_ptr<const Endpoint> endpoint_;
  Operator operator_;
  const std::unique_ptr<v1::PrefixCache::Stub> prefix_cache_;
  const std::unique_ptr<v1::PagePool::Stub> page_pool_;
  const std::unique_ptr<v1::Blocks::Stub> blocks_;
  const std::unique_ptr<v1::Sessions::Stub> sessions_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
  const std::unique_ptr<v1::DataPath::Stub> data_path_;
  // Begins at random, so that two clients of a resumed session do not use the
  // same ids.
  std::atomic<uint64_t> last_request_id_;
  ClientLane lane_;
  std::atomic<PageRoom> room_;
  absl::Mutex kept_mutex_;
  std::vector<UniqueFd> kept_ ABSL_GUARDED_BY(kept_mutex_);
  SessionStream session_;
  // The last member: its thread makes calls.
  Settlements settlements_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_CONNECTION_H_
