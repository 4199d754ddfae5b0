#include "service/handlers/prefix_cache_service.h"

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/match/unlocking.h"
#include "core/operators/eviction_work.h"
#include "core/requests/errors.h"
#include "os/monotonic_clock.h"
#include "service/handlers/serve_data_path.h"
#include "service/handlers/step_time.h"
#include "service/handlers/wire.h"
#include "service/rpc/unary_call.h"

namespace pando {
namespace {

constexpr int kMaxQueries = 4096;

std::optional<uint32_t> OutputTokensOf(const v1::InsertRequest& request) {
  if (!request.has_output_tokens()) return std::nullopt;
  return request.output_tokens();
}

absl::StatusOr<ExpectedReuse> ExpectedReuseOf(v1::ExpectedReuse reuse) {
  switch (reuse) {
    case v1::EXPECTED_REUSE_UNSPECIFIED:
      return ExpectedReuse::kUnknown;
    case v1::EXPECTED_REUSE_ENDED:
      return ExpectedReuse::kEnded;
    case v1::EXPECTED_REUSE_SOON:
      return ExpectedReuse::kSoon;
    default:
      return MakeError(
          Reason::kInvalidField,
          absl::StrCat("expected_reuse is ", static_cast<int>(reuse),
                       ", which this server does not know"));
  }
}

absl::StatusOr<LockAction> LockActionOf(v1::LockAction action) {
  switch (action) {
    case v1::LOCK_ACTION_UNSPECIFIED:
      return LockAction::kKeep;
    case v1::LOCK_ACTION_RELOCK:
      return LockAction::kRelock;
    case v1::LOCK_ACTION_UNLOCK:
      return LockAction::kUnlock;
    default:
      return MakeError(Reason::kInvalidField,
                       absl::StrCat("lock_action is ", static_cast<int>(action),
                                    ", which this server does not know"));
  }
}

}  // namespace

// The work of one MatchPrefixes: scores its queries one after the other.
class PrefixCacheService::Scoring final : public SteppedCalls::Work {
 public:
  // All outlive this.
  Scoring(PrefixCacheService* service, const v1::MatchPrefixesRequest& request,
          std::optional<LookedUp> looked_up,
          v1::MatchPrefixesResponse& response)
      : service_(service),
        request_(request),
        looked_up_(std::move(looked_up)),
        response_(response) {}

  SteppedCalls::Progress Step() override {
    const StepTime time;
    while (status_.ok() && response_.scores_size() < request_.queries_size()) {
      status_ = ScoreNext();
      if (time.is_over()) return SteppedCalls::Progress::kMore;
    }
    return SteppedCalls::Progress::kDone;
  }

  const absl::Status& status() const { return status_; }

 private:
  absl::Status ScoreNext() {
    const int next = response_.scores_size();
    const absl::StatusOr<PrefixScore> score =
        service_->Score(request_.queries(next));
    v1::PrefixScore& out = *response_.add_scores();
    if (score.ok()) {
      out.set_matched_tokens(score->matched_tokens);
      out.set_is_pending(score->is_pending);
      if (looked_up_.has_value()) {
        FillLoadable(looked_up_->kept[static_cast<size_t>(next)],
                     score->matched_tokens, out);
      }
    } else if (ReasonOf(score.status()) == Reason::kHandleGone) {
      out.set_is_handle_gone(true);
    } else {
      return score.status();
    }
    return absl::OkStatus();
  }

  PrefixCacheService* const service_;
  const v1::MatchPrefixesRequest& request_;
  const std::optional<LookedUp> looked_up_;
  v1::MatchPrefixesResponse& response_;
  absl::Status status_;
};

// The work of one Insert, with the pages that it names.
struct PrefixCacheService::InsertCall final : SteppedCalls::Work {
  InsertCall(PrefixCache* c, const v1::InsertRequest& request, NamespaceKey in)
      : cache(c),
        ns(std::move(in)),
        pages(PagesOf(request.page_ids())),
        free_pages(PagesOf(request.free_page_ids())) {}
  SteppedCalls::Progress Step() override {
    return SteppedCalls::TakeSteps(*cache, *work);
  }
  bool Abandon() override { return work->Abandon(); }

  PrefixCache* const cache;
  const NamespaceKey ns;
  const std::vector<PageId> pages;
  const std::vector<PageId> free_pages;
  std::optional<Inserting> work;  // set before the first step
};

void PrefixCacheService::AddMethodsTo(DataPath& data_path) {
  AddDataPathMethods<v1::PrefixCache>(this, data_path);
}

void PrefixCacheService::Register(RpcServer& server, RpcMetrics& metrics,
                                  const DataPath& data_path) {
  server.AddService(&grpc_);
  ServeDataPath(server, grpc_, metrics, data_path);
  ServeMethod(server, grpc_, metrics,
              MakeMethod<v1::PrefixCache>(this, &PrefixCacheService::Evict));
}

std::optional<absl::Status> PrefixCacheService::MatchPrefix(
    const v1::MatchPrefixRequest& request, v1::MatchPrefixResponse& response,
    WaitingCall& call) {
  std::unique_ptr<MatchCall> begun;
  if (!stepped_->IsUnderWay(call)) {
    begun = std::make_unique<MatchCall>(match_parts(), request, response, call);
    ASSIGN_OR_RETURN(const bool is_begun, begun->Begin());
    if (!is_begun) return std::nullopt;
  }
  return stepped_->Answer<MatchCall>(
      call, [&] { return std::move(begun); },
      [](MatchCall& done) { return done.End(); });
}

absl::Status PrefixCacheService::CheckQueries(
    const v1::MatchPrefixesRequest& request) const {
  if (request.queries_size() > kMaxQueries) {
    return MakeError(Reason::kInvalidField,
                     absl::StrCat("queries has ", request.queries_size(),
                                  " entries; the limit is ", kMaxQueries));
  }
  uint64_t tokens = 0;
  for (const v1::PrefixQuery& query : request.queries()) {
    tokens += static_cast<uint64_t>(query.tokens_size());
  }
  if (tokens <= max_tokens_) return absl::OkStatus();
  return MakeError(Reason::kTooManyTokens,
                   absl::StrCat("tokens of all queries have ", tokens,
                                " entries; the limit is ", max_tokens_));
}

std::optional<absl::Status> PrefixCacheService::MatchPrefixes(
    const v1::MatchPrefixesRequest& request,
    v1::MatchPrefixesResponse& response, WaitingCall& call) {
  std::optional<LookedUp> looked_up;
  if (!stepped_->IsUnderWay(call)) {
    const bool is_told = request.tell_loadable() && loader_ != nullptr;
    if (is_told) looked_up = loader_->End(call);
    if (call.is_cancelled()) return absl::CancelledError("the caller is gone");
    RETURN_IF_ERROR(CheckQueries(request));
    if (is_told && !looked_up.has_value()) {
      ASSIGN_OR_RETURN(const bool is_looked_up, LookUp(call, request));
      if (is_looked_up) return std::nullopt;
    }
  }
  return stepped_->Answer<Scoring>(
      call,
      [&] {
        return std::make_unique<Scoring>(this, request, std::move(looked_up),
                                         response);
      },
      [](Scoring& done) { return done.status(); });
}

// Looks up the prompts of the queries. The tiers cannot look up what follows a
// handle, so a query with a handle stands in the list as a prompt of no tokens.
absl::StatusOr<bool> PrefixCacheService::LookUp(
    WaitingCall& call, const v1::MatchPrefixesRequest& request) {
  std::vector<NamespaceKey> namespaces;  // to which the queries refer
  std::vector<PrefixQuery> queries;
  namespaces.reserve(static_cast<size_t>(request.queries_size()));
  for (const v1::PrefixQuery& query : request.queries()) {
    ASSIGN_OR_RETURN(NamespaceKey ns, NamespaceOf(query.namespace_()));
    ASSIGN_OR_RETURN(const std::span<const Token> tokens,
                     TokensOf(query.tokens(), max_tokens_));
    namespaces.push_back(std::move(ns));
    queries.push_back(
        {.ns = namespaces.back(),
         .tokens = query.has_after() ? std::span<const Token>() : tokens,
         .max_tokens = MaxTokensOf(query)});
  }
  return loader_->BeginTelling(call, queries, MonotonicNow() + kLookupTime) &&
         KeepWhileLookedUp(*cache_, *loader_, call, SessionId()).ok();
}

absl::StatusOr<PrefixScore> PrefixCacheService::Score(
    const v1::PrefixQuery& query) {
  ASSIGN_OR_RETURN(const NamespaceKey ns, NamespaceOf(query.namespace_()));
  ASSIGN_OR_RETURN(const PrefixHandle after, AfterOf(query, epoch_));
  ASSIGN_OR_RETURN(const std::span<const Token> tokens,
                   TokensOf(query.tokens(), max_tokens_));
  return cache_->Score({.ns = ns,
                        .tokens = tokens,
                        .max_tokens = MaxTokensOf(query),
                        .after = after});
}

std::optional<absl::Status> PrefixCacheService::Insert(
    const v1::InsertRequest& request, v1::InsertResponse& response,
    WaitingCall& call) {
  std::unique_ptr<InsertCall> begun;
  if (!stepped_->IsUnderWay(call)) {
    ASSIGN_OR_RETURN(begun, BeginInsert(request));
  }
  return stepped_->Answer<InsertCall>(
      call, [&] { return std::move(begun); },
      [&](InsertCall& done) { return Answer(done, response); });
}

absl::StatusOr<std::unique_ptr<PrefixCacheService::InsertCall>>
PrefixCacheService::BeginInsert(const v1::InsertRequest& request) {
  ASSIGN_OR_RETURN(const std::span<const Token> tokens,
                   TokensOf(request.tokens(), max_tokens_));
  ASSIGN_OR_RETURN(NamespaceKey ns, NamespaceOf(request.namespace_()));
  ASSIGN_OR_RETURN(const PrefixHandle after, AfterOf(request, epoch_));
  ASSIGN_OR_RETURN(const LockAction action,
                   LockActionOf(request.lock_action()));
  ASSIGN_OR_RETURN(const ExpectedReuse expected_reuse,
                   ExpectedReuseOf(request.expected_reuse()));
  auto insert = std::make_unique<InsertCall>(cache_, request, std::move(ns));
  insert->work.emplace(cache_->Start(
      InsertRequest{.session = SessionId(request.session_id()),
                    .ns = insert->ns,
                    .tokens = tokens,
                    .pages = insert->pages,
                    .anchor = LockId(request.lock_id()),
                    .lock_action = action,
                    .keep_duplicates = request.keep_duplicates(),
                    .free_pages = insert->free_pages,
                    .prompt_tokens = request.prompt_tokens(),
                    .after = after,
                    .priority = request.priority(),
                    .output_tokens = OutputTokensOf(request),
                    .expected_reuse = expected_reuse,
                    .retain_seconds = request.retain_seconds(),
                    .request_id = RequestId(request.request_id())}));
  return insert;
}

absl::Status PrefixCacheService::Answer(InsertCall& done,
                                        v1::InsertResponse& response) {
  ASSIGN_OR_RETURN(const InsertResult result, done.work->Take());
  // Pages of a long insert, which takes several steps, may be evicted by now.
  if (!done.work->has_many_pages()) Verify(done.pages, result);
  response.set_existing_tokens(result.existing_tokens);
  AppendPages(result.canonical_pages, response.mutable_canonical_page_ids());
  response.set_freed_duplicates(result.freed_duplicates);
  if (result.handle != PrefixHandle()) {
    FillHandle(result.handle, epoch_, response.mutable_handle());
  }
  response.set_free_pages(result.room.free);
  response.set_evictable_pages(result.room.evictable);
  return absl::OkStatus();
}

// A repeat is not verified, because its pages may have gone to another session
// since the first answer.
void PrefixCacheService::Verify(std::span<const PageId> inserted,
                                const InsertResult& result) {
  if (verifier_ == nullptr || result.is_repeat) return;
  verifier_->HandedOut(result.canonical_pages);
  verifier_->Inserted(inserted.subspan(result.canonical_pages.size()));
}

absl::Status PrefixCacheService::Lock(const v1::LockRequest& request,
                                      v1::LockResponse& response) {
  ASSIGN_OR_RETURN(const std::span<const Token> tokens,
                   TokensOf(request.tokens(), max_tokens_));
  ASSIGN_OR_RETURN(const NamespaceKey ns, NamespaceOf(request.namespace_()));
  ASSIGN_OR_RETURN(const PrefixHandle after, AfterOf(request, epoch_));
  ASSIGN_OR_RETURN(
      const LockResult result,
      cache_->Lock({.session = SessionId(request.session_id()),
                    .ns = ns,
                    .tokens = tokens,
                    .after = after,
                    .request_id = RequestId(request.request_id())}));
  response.set_lock_id(result.lock.value());
  response.set_locked_tokens(result.locked_tokens);
  if (result.handle != PrefixHandle()) {
    FillHandle(result.handle, epoch_, response.mutable_handle());
  }
  return absl::OkStatus();
}

std::optional<absl::Status> PrefixCacheService::Unlock(
    const v1::UnlockRequest& request, v1::UnlockResponse&, WaitingCall& call) {
  if (request.lock_ids().empty()) {
    return MakeError(Reason::kEmptyRequest, "lock_ids is empty");
  }
  return stepped_->AnswerFromCache<Unlocking>(
      call,
      [&] {
        return Unlocking(SessionId(request.session_id()),
                         {request.lock_ids().begin(), request.lock_ids().end()},
                         RequestId(request.request_id()));
      },
      [](Unlocking& done) { return done.status(); });
}

std::optional<absl::Status> PrefixCacheService::Evict(
    const v1::EvictRequest& request, v1::EvictResponse& response,
    WaitingCall& call) {
  return stepped_->AnswerFromCache<EvictionWork>(
      call, [&] { return EvictionWork(request.pages()); },
      [&](EvictionWork& done) {
        response.set_evicted_pages(done.evicted_pages());
        return absl::OkStatus();
      });
}

}  // namespace pando
