#include "clients/cpp/src/connection.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/src/refused_user.h"

namespace pando {
inline namespace client {
namespace {

// The pause between attempts of a call whose connection breaks. It doubles, so
// that they span most of a second.
constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr int kRepeats = 5;

}  // namespace

absl::Status CheckAfter(const PrefixHandle& after, size_t tokens) {
  if (after.tokens <= tokens) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "after: a prefix of ", after.tokens, " tokens, given ", tokens));
}

Connection::Connection(ConnectOptions options,
                       std::shared_ptr<const Endpoint> endpoint)
    : options_(std::move(options)),
      endpoint_(std::move(endpoint)),
      operator_(endpoint_),
      prefix_cache_(v1::PrefixCache::NewStub(endpoint_->channel())),
      page_pool_(v1::PagePool::NewStub(endpoint_->channel())),
      blocks_(v1::Blocks::NewStub(endpoint_->channel())),
      sessions_(v1::Sessions::NewStub(endpoint_->channel())),
      admin_(v1::Admin::NewStub(endpoint_->channel())),
      data_path_(v1::DataPath::NewStub(endpoint_->channel())),
      last_request_id_(absl::Uniform<uint64_t>(absl::BitGen())),
      session_(
          v1::Sessions::NewStub(endpoint_->channel()),
          {.client_name = options_.name,
           .token = endpoint_->token(),
           .timeout = endpoint_->timeout(),
           .on_lost = options_.on_session_lost,
           .on_opened = [this](const Session& s) { OpenLane(s); },
           .on_ended = [this](const absl::Status& end) { lane_.Close(end); }}) {
}

void Connection::OpenLane(const Session& session) {
  if (!options_.lane) {
    lane_.Close(absl::CancelledError("ConnectOptions::lane is false"));
    return;
  }
  if (!endpoint_->is_unix_socket()) {
    lane_.Close(absl::UnavailableError("a lane needs a Unix socket"));
    return;
  }
  v1::OpenLaneRequest request;
  request.set_session_id(session.id);
  absl::StatusOr<ReceivedMemory> memory =
      FetchMemory(*data_path_, &v1::DataPath::Stub::OpenLane, request,
                  [] { return absl::OkStatus(); });
  const absl::Status opened =
      memory.ok() ? lane_.Open(*std::move(memory), session.page_tokens)
                  : memory.status();
  if (!opened.ok()) lane_.Close(opened);
}

absl::Status Connection::AsUnanswered(const absl::Status& status) {
  // These stand for a missing socket, a connection that closes while this side
  // writes, and a refused token.
  if (!absl::IsNotFound(status) && !absl::IsFailedPrecondition(status) &&
      !absl::IsPermissionDenied(status)) {
    return status;
  }
  return absl::UnavailableError(status.message());
}

absl::Status Connection::AwaitOpened() {
  const absl::Status status = session_.AwaitOpened(endpoint_->timeout());
  if (status.ok()) return status;
  const std::string refused = WhyUserIsRefused(endpoint_->address());
  return WithReason(
      absl::Status(
          status.code(),
          absl::StrCat("open a session at ", endpoint_->address(), ": ",
                       refused.empty() ? status.message() : refused)),
      ReasonOf(status));
}

absl::StatusOr<Session> Connection::PresentSession() const {
  const Session present = session();
  if (present.id != 0) return present;
  return absl::UnavailableError(
      absl::StrCat("no session at ", endpoint_->address(), " at present"));
}

absl::Status Connection::CheckSession(uint64_t session_id) const {
  if (session_id != 0 && session_id == session().id) return absl::OkStatus();
  return WithReason(
      absl::FailedPreconditionError("the session of these locks, pages or "
                                    "block memory is lost; drop them"),
      reason::kSessionLost);
}

absl::StatusOr<Session> Connection::SessionOfMemory() const {
  ASSIGN_OR_RETURN(const Session session, PresentSession());
  const uint64_t attached = memory_of_.load();
  if (attached != 0) RETURN_IF_ERROR(CheckSession(attached));
  return session;
}

absl::Status Connection::Repeat(absl::Time deadline,
                                const std::function<absl::Status()>& attempt,
                                const std::function<absl::Status()>& check) {
  absl::Duration pause = kFirstPause;
  for (int repeats = 0;; ++repeats) {
    const absl::Status status = attempt();
    if (!IsUnanswered(status)) return status;
    RETURN_IF_ERROR(check());
    if (repeats == kRepeats || absl::Now() + pause >= deadline) return status;
    absl::SleepFor(pause);
    pause *= 2;
  }
}

absl::Status Connection::SendAfter(
    const Session& session, PrefixHandle& after,
    const std::function<absl::Status()>& send) const {
  after = session.Usable(after);
  const absl::Status status = send();
  if (after.tokens == 0 || ReasonOf(status) != reason::kHandleGone) {
    return status;
  }
  after = {};
  return send();
}

uint64_t Connection::NextRequestId() {
  const uint64_t id = ++last_request_id_;
  return id != 0 ? id : ++last_request_id_;
}

void Connection::ExchangeTogether(std::span<Exchange* const> exchanges) {
  v1::BatchRequest request;
  for (const Exchange* exchange : exchanges) {
    // A batched request is a message with one field, which has the number of
    // the method and holds the request.
    using google::protobuf::io::CodedOutputStream;
    using google::protobuf::io::StringOutputStream;
    std::string bytes;
    {
      StringOutputStream stream(&bytes);
      CodedOutputStream out(&stream);
      constexpr uint32_t kLengthDelimited = 2;
      out.WriteTag(static_cast<uint32_t>(exchange->method()) << 3 |
                   kLengthDelimited);
      out.WriteVarint32(static_cast<uint32_t>(exchange->request().size()));
      out.WriteString(exchange->request());
    }
    request.add_requests()->ParseFromString(bytes);
  }
  const absl::StatusOr<v1::BatchResponse> response =
      Call(*data_path_, &v1::DataPath::Stub::Batch, request);
  if (!response.ok() ||
      response->responses_size() != static_cast<int>(exchanges.size())) {
    return;
  }
  for (size_t i = 0; i < exchanges.size(); ++i) {
    const v1::BatchedResponse& each = response->responses(static_cast<int>(i));
    if (each.has_error()) {
      exchanges[i]->SetAnswer(FromStatusMessage(each.error()), "");
      continue;
    }
    const auto* const field = each.GetReflection()->GetOneofFieldDescriptor(
        each, each.GetDescriptor()->FindOneofByName("response"));
    if (field == nullptr) continue;
    exchanges[i]->SetAnswer(
        absl::OkStatus(),
        each.GetReflection()->GetMessage(each, field).SerializeAsString());
  }
}

absl::Status Connection::Unlock(uint64_t session_id,
                                std::span<const uint64_t> lock_ids,
                                Exchange* exchange) {
  RETURN_IF_ERROR(CheckSession(session_id));
  v1::UnlockRequest request;
  request.set_session_id(session_id);
  request.mutable_lock_ids()->Add(lock_ids.begin(), lock_ids.end());
  v1::UnlockResponse response;
  return Mutate(*prefix_cache_, &v1::PrefixCache::Stub::Unlock, request,
                &response, exchange);
}

void Connection::Abandon(uint64_t session_id, uint64_t lock_id) {
  v1::UnlockRequest request;
  request.set_session_id(session_id);
  request.add_lock_ids(lock_id);
  v1::UnlockResponse response;
  const auto unlock = &v1::PrefixCache::Stub::Unlock;
  const absl::Status status =
      Mutate(*prefix_cache_, unlock, request, &response);
  RepeatIfUnknown(status, *prefix_cache_, unlock, request);
}

void Connection::Keep(std::vector<UniqueFd> shards) {
  absl::MutexLock lock(&kept_mutex_);
  for (UniqueFd& shard : shards) kept_.push_back(std::move(shard));
}

void Connection::SettleIfUnknown(const absl::Status& status,
                                 const v1::MatchPrefixRequest& request,
                                 std::span<const Token> tokens) {
  if (!MayHaveActed(status)) return;
  v1::MatchPrefixRequest whole = request;
  whole.clear_pending_wait_ms();
  whole.clear_load();
  Fill(tokens, whole.mutable_tokens());
  settlements_.Add([this, again = std::move(whole),
                    free_id = NextRequestId()]() mutable {
    v1::MatchPrefixResponse brought;
    RETURN_IF_ERROR(Repeated(
        *prefix_cache_, &v1::PrefixCache::Stub::MatchPrefix, again, &brought));
    return GiveBack(again.session_id(), brought.lock_id(),
                    brought.reserved_page_ids(), free_id);
  });
}

void Connection::SettleIfUnknown(const absl::Status& status,
                                 const v1::LockRequest& request) {
  if (!MayHaveActed(status)) return;
  settlements_.Add([this, again = request] {
    v1::LockResponse brought;
    RETURN_IF_ERROR(Repeated(*prefix_cache_, &v1::PrefixCache::Stub::Lock,
                             again, &brought));
    return GiveBack(again.session_id(), brought.lock_id(), {}, 0);
  });
}

void Connection::SettleIfUnknown(const absl::Status& status,
                                 const v1::AllocatePagesRequest& request) {
  if (!MayHaveActed(status)) return;
  settlements_.Add([this, again = request, free_id = NextRequestId()] {
    v1::AllocatePagesResponse brought;
    RETURN_IF_ERROR(Repeated(*page_pool_, &v1::PagePool::Stub::AllocatePages,
                             again, &brought));
    return GiveBack(again.session_id(), 0, brought.page_ids(), free_id);
  });
}

// If there is no answer, it returns so that the caller tries everything again.
absl::Status Connection::GiveBack(
    uint64_t session_id, uint64_t lock_id,
    const google::protobuf::RepeatedField<uint32_t>& page_ids,
    uint64_t free_id) {
  if (!page_ids.empty()) {
    v1::FreePagesRequest request;
    request.set_session_id(session_id);
    *request.mutable_page_ids() = page_ids;
    request.set_request_id(free_id);
    v1::FreePagesResponse response;
    const absl::Status freed = Repeated(
        *page_pool_, &v1::PagePool::Stub::FreePages, request, &response);
    if (MayHaveActed(freed)) return freed;
  }
  if (lock_id == 0) return absl::OkStatus();
  v1::UnlockRequest request;
  request.set_session_id(session_id);
  request.add_lock_ids(lock_id);
  v1::UnlockResponse response;
  return Repeated(*prefix_cache_, &v1::PrefixCache::Stub::Unlock, request,
                  &response);
}

}  // namespace client
}  // namespace pando
