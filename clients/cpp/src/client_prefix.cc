// The calls of Client that match and publish prefixes.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "clients/cpp/src/connection.h"
#include "clients/cpp/src/convert.h"
#include "clients/cpp/src/status.h"
#include "pando/client.h"

namespace pando {
inline namespace client {
namespace {

// A message that keeps its memory from call to call: prompts are long, and
// allocating them anew would cost more than sending them. One per thread, so
// that calls do not share it.
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

// Returns the rest of the wait in milliseconds. It is never 0: otherwise the
// answer would say that the call did not wait, not that the wait is over.
uint32_t PendingWaitMs(absl::Time wait_end) {
  const int64_t left = absl::ToInt64Milliseconds(wait_end - absl::Now());
  return std::clamp<int64_t>(left, 1, std::numeric_limits<uint32_t>::max());
}

absl::Status CheckInsert(size_t tokens, const InsertOptions& options) {
  if ((options.lock != nullptr) == (options.session_id != 0)) {
    return absl::InvalidArgumentError(
        "InsertOptions: give either lock or session_id");
  }
  if (options.lock != nullptr && options.after.tokens != 0) {
    return absl::InvalidArgumentError(
        "InsertOptions: give either lock or after");
  }
  return CheckAfter(options.after, tokens);
}

void FillInsert(std::span<const Token> tokens, std::span<const PageId> page_ids,
                const InsertOptions& options, v1::InsertRequest& request) {
  if (options.lock != nullptr) request.set_lock_id(options.lock->id());
  Fill(tokens, request.mutable_tokens());
  Fill(page_ids, request.mutable_page_ids());
  request.set_lock_action(ToProto(options.lock_action));
  request.set_keep_duplicates(options.keep_duplicates);
  Fill(options.free_page_ids, request.mutable_free_page_ids());
  request.set_prompt_tokens(options.prompt_tokens);
  request.set_priority(options.priority);
  if (options.output_tokens) request.set_output_tokens(*options.output_tokens);
  static_assert(static_cast<int>(ExpectedReuse::kEnded) ==
                v1::EXPECTED_REUSE_ENDED);
  static_assert(static_cast<int>(ExpectedReuse::kSoon) ==
                v1::EXPECTED_REUSE_SOON);
  request.set_expected_reuse(
      static_cast<v1::ExpectedReuse>(options.expected_reuse));
  request.set_retain_seconds(options.retain_seconds);
}

// Fills in all fields but the tokens.
void FillMatch(const MatchOptions& options, const PrefixHandle& after,
               v1::MatchPrefixRequest& request) {
  FillPlace(options.ns, after, request);
  if (options.max_tokens) request.set_max_tokens(*options.max_tokens);
  request.set_lock(options.lock);
  request.set_reserve_tokens(options.reserve_tokens);
  if (!options.touch) request.set_touch(false);
  request.set_load(ToProto(options.load));
}

void FillQuery(const PrefixQuery& query, const PrefixHandle& after,
               v1::PrefixQuery& out) {
  FillPlace(query.ns, after, out);
  Fill(query.tokens.subspan(after.tokens), out.mutable_tokens());
  if (query.max_tokens) out.set_max_tokens(*query.max_tokens);
}

// Writes the scores of the queries of this round. Returns those queries whose
// handle is gone.
std::vector<size_t> TakeScores(const v1::MatchPrefixesResponse& response,
                               const std::vector<size_t>& asked,
                               std::vector<PrefixScore>& scores) {
  std::vector<size_t> gone;
  for (size_t i = 0; i < asked.size(); ++i) {
    const v1::PrefixScore& score = response.scores(static_cast<int>(i));
    if (score.is_handle_gone()) gone.push_back(asked[i]);
    scores[asked[i]] = {.matched_tokens = score.matched_tokens(),
                        .is_pending = score.is_pending(),
                        .loadable_tokens = score.loadable_tokens(),
                        .loadable_tier = FromProto(score.loadable_tier())};
  }
  return gone;
}

}  // namespace

absl::StatusOr<Match> Client::MatchPrefix(std::span<const Token> tokens,
                                          const MatchOptions& options) {
  return MatchPrefix(tokens, options, nullptr);
}

absl::StatusOr<Match> Client::MatchPrefix(std::span<const Token> tokens,
                                          const MatchOptions& options,
                                          Exchange* exchange) {
  RETURN_IF_ERROR(CheckAfter(options.after, tokens.size()));
  Session session = connection_->session();
  const bool needs_session = options.lock || options.reserve_tokens > 0 ||
                             options.load == Load::kStart;
  if (needs_session) {
    ASSIGN_OR_RETURN(session, connection_->PresentSession());
  }
  auto& response = Reused<v1::MatchPrefixResponse>();
  PrefixHandle after = options.after;
  const bool waits = options.pending_wait > absl::ZeroDuration();
  const absl::Time wait_end =
      absl::Now() + (waits ? options.pending_wait : absl::ZeroDuration());
  const absl::Time deadline = wait_end + connection_->timeout();

  const absl::Status status = connection_->SendAfter(session, after, [&] {
    auto& request = Reused<v1::MatchPrefixRequest>();
    request.set_session_id(session.id);
    FillMatch(options, after, request);
    const std::span<const Token> sent = tokens.subspan(after.tokens);
    const auto attempt = [&] {
      if (waits) request.set_pending_wait_ms(PendingWaitMs(wait_end));
      return connection_->CallInto(connection_->prefix_cache(),
                                   &v1::PrefixCache::Stub::MatchPrefix, request,
                                   sent, &response, deadline, exchange);
    };
    if (!options.lock) return attempt();
    request.set_request_id(connection_->NextRequestId(exchange));
    absl::Status answered = connection_->Repeat(session.id, deadline, attempt);
    connection_->SettleIfUnknown(answered, request, sent);
    return answered;
  });
  if (!status.ok()) return status;

  connection_->TakeRoom(response);
  Match match;
  match.matched_tokens = response.matched_tokens();
  match.page_ids = ToVector(response.page_ids());
  if (after.tokens != 0) {
    match.first_page = std::min(session.PagesOf(after.tokens),
                                session.PagesOf(match.matched_tokens));
  }
  match.handle = FromProto(response.handle());
  match.pending = FromProto(response.pending());
  match.loadable_tokens = response.loadable_tokens();
  match.loadable_tier = FromProto(response.loadable_tier());
  if (response.lock_id() != 0) {
    match.lock = Lock(connection_, session.id, response.lock_id(),
                      match.matched_tokens, match.handle);
  }
  match.reserved = {.session_id = session.id,
                    .ids = ToVector(response.reserved_page_ids())};
  return match;
}

absl::StatusOr<std::vector<PrefixScore>> Client::MatchPrefixes(
    std::span<const PrefixQuery> queries, const ScoreOptions& options) {
  std::vector<PrefixScore> scores(queries.size());
  std::vector<size_t> asked(queries.size());
  std::iota(asked.begin(), asked.end(), size_t{0});
  const Session session = connection_->session();
  // The first round begins at the handles. The second round sends the whole
  // prompts of the queries whose handle is gone.
  for (const bool use_handles : {true, false}) {
    if (asked.empty()) break;
    v1::MatchPrefixesRequest request;
    request.set_tell_loadable(options.tell_loadable);
    for (const size_t i : asked) {
      const PrefixQuery& query = queries[i];
      RETURN_IF_ERROR(CheckAfter(query.after, query.tokens.size()));
      const PrefixHandle after = use_handles && !options.tell_loadable
                                     ? session.Usable(query.after)
                                     : PrefixHandle();
      FillQuery(query, after, *request.add_queries());
    }
    ASSIGN_OR_RETURN(
        const v1::MatchPrefixesResponse response,
        connection_->Call(connection_->prefix_cache(),
                          &v1::PrefixCache::Stub::MatchPrefixes, request));
    asked = TakeScores(response, asked, scores);
  }
  return scores;
}

absl::StatusOr<InsertResult> Client::Insert(std::span<const Token> tokens,
                                            std::span<const PageId> page_ids,
                                            const InsertOptions& options) {
  return Insert(tokens, page_ids, options, nullptr);
}

absl::StatusOr<InsertResult> Client::Insert(std::span<const Token> tokens,
                                            std::span<const PageId> page_ids,
                                            const InsertOptions& options,
                                            Exchange* exchange) {
  Lock* const lock = options.lock;
  if (lock != nullptr && !lock->held()) {
    return absl::InvalidArgumentError("InsertOptions.lock: holds nothing");
  }
  if (lock != nullptr && lock->connection_.lock() != connection_) {
    return absl::InvalidArgumentError("InsertOptions.lock: another client's");
  }
  if (lock != nullptr && lock->is_in_doubt() && !page_ids.empty()) {
    return WithReason(
        absl::FailedPreconditionError(
            "InsertOptions.lock: an insert that was to move it got no answer; "
            "it can only be released"),
        reason::kLockInDoubt);
  }
  RETURN_IF_ERROR(CheckInsert(tokens.size(), options));
  const Session session = connection_->session();
  const uint64_t session_id =
      lock != nullptr ? lock->session_id() : options.session_id;
  if (absl::Status status = connection_->CheckSession(session_id);
      !status.ok()) {
    if (lock != nullptr) lock->ForgetIfGone(status);
    return status;
  }

  auto& response = Reused<v1::InsertResponse>();
  PrefixHandle after = options.after;
  const absl::Status status = connection_->SendAfter(session, after, [&] {
    auto& request = Reused<v1::InsertRequest>();
    const size_t first_page =
        std::min<size_t>(session.PagesOf(after.tokens), page_ids.size());
    request.set_session_id(session_id);
    FillPlace(options.ns, after, request);
    FillInsert(tokens.subspan(after.tokens), page_ids.subspan(first_page),
               options, request);
    return connection_->Mutate(connection_->prefix_cache(),
                               &v1::PrefixCache::Stub::Insert, request,
                               &response, exchange);
  });
  if (!status.ok()) {
    if (lock != nullptr) lock->ForgetIfGone(status);
    if (lock != nullptr && options.lock_action == LockAction::kRelock &&
        MayHaveActed(status)) {
      lock->LoseEnd();
    }
    return status;
  }
  connection_->TakeRoom(response);
  const PrefixHandle handle = FromProto(response.handle());
  if (options.lock_action == LockAction::kUnlock) lock->Forget();
  if (options.lock_action == LockAction::kRelock) {
    lock->MoveTo(lock->tokens() + page_ids.size() * session.page_tokens,
                 handle);
  }
  const uint32_t first_page = session.PagesOf(after.tokens);
  std::vector<PageId> canonical = ToVector(response.canonical_page_ids());
  std::vector<PageId> table = canonical;
  const auto own = page_ids.subspan(
      std::min(page_ids.size(), first_page + canonical.size()));
  table.insert(table.end(), own.begin(), own.end());
  return InsertResult{
      .existing_tokens = after.tokens + response.existing_tokens(),
      .canonical_page_ids = std::move(canonical),
      .page_ids = std::move(table),
      .first_page = first_page,
      .freed_duplicates = response.freed_duplicates(),
      .handle = handle};
}

}  // namespace client
}  // namespace pando
