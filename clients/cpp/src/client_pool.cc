// The calls of Client that concern the pool, and those for operators.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "clients/cpp/src/connection.h"
#include "clients/cpp/src/convert.h"
#include "clients/cpp/src/layout.h"
#include "clients/cpp/src/status.h"
#include "pando/client.h"

namespace pando {
inline namespace client {
namespace {

// How long pandod may take to make an open pool. GPU drivers start slowly.
constexpr absl::Duration kOpenPoolPatience = absl::Minutes(1);
constexpr absl::Duration kBetweenTries = absl::Milliseconds(20);

bool HasNoSize(const AttachOptions& options) {
  return options.expected_layout && options.expected_layout->page_stride == 0;
}

// Returns whether a call may have failed because pandod restarts, or is about
// to.
bool IsAway(const absl::Status& status) {
  if (ReasonOf(status) == "DRAINING") return false;
  return IsUnanswered(status) || absl::IsUnavailable(status) ||
         ReasonOf(status) == "SESSION_LOST";
}

absl::Status CheckSizes(const PoolDescription& pool,
                        const std::vector<uint64_t>& sizes) {
  for (size_t i = 0; i < pool.shards.size() && i < sizes.size(); ++i) {
    if (sizes[i] != pool.shards[i].size_bytes) {
      return absl::InternalError(absl::StrCat("shard ", i, ": ", sizes[i],
                                              " bytes, the pool says ",
                                              pool.shards[i].size_bytes));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ReservedPages> Client::AllocatePages(
    uint32_t pages, const Namespace& ns, std::optional<uint32_t> at_least) {
  return AllocatePages(pages, ns, at_least, nullptr);
}

absl::StatusOr<ReservedPages> Client::AllocatePages(
    uint32_t pages, const Namespace& ns, std::optional<uint32_t> at_least,
    Exchange* exchange) {
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  v1::AllocatePagesRequest request;
  request.set_session_id(session.id);
  request.set_pages(pages);
  if (at_least.has_value()) request.set_min_pages(*at_least);
  if (IsSet(ns)) ToProto(ns, request.mutable_namespace_());
  v1::AllocatePagesResponse response;
  const absl::Status answered = connection_->Mutate(
      connection_->page_pool(), &v1::PagePool::Stub::AllocatePages, request,
      &response, exchange);
  connection_->SettleIfUnknown(answered, request);
  RETURN_IF_ERROR(answered);
  connection_->TakeRoom(response);
  return ReservedPages{.session_id = session.id,
                       .ids = ToVector(response.page_ids())};
}

absl::Status Client::FreePages(const ReservedPages& pages) {
  return FreePages(pages, nullptr);
}

absl::Status Client::FreePages(const ReservedPages& pages, Exchange* exchange) {
  RETURN_IF_ERROR(connection_->CheckSession(pages.session_id));
  v1::FreePagesRequest request;
  request.set_session_id(pages.session_id);
  Fill(pages.ids, request.mutable_page_ids());
  v1::FreePagesResponse response;
  return connection_->Mutate(connection_->page_pool(),
                             &v1::PagePool::Stub::FreePages, request, &response,
                             exchange);
}

absl::Status Client::EndSession(uint64_t session_id) {
  v1::EndSessionRequest request;
  request.set_session_id(session_id);
  return connection_
      ->Call(connection_->sessions(), &v1::Sessions::Stub::End, request)
      .status();
}

absl::StatusOr<PoolDescription> Client::DescribePool() {
  ASSIGN_OR_RETURN(const v1::DescribePoolResponse response,
                   connection_->Call(connection_->page_pool(),
                                     &v1::PagePool::Stub::DescribePool,
                                     v1::DescribePoolRequest()));
  return FromProto(response.pool());
}

absl::Status Client::SayLayout(const AttachOptions& options) {
  const absl::Time deadline =
      absl::Now() + std::max(connection_->timeout(), kOpenPoolPatience);
  bool may_begin_anew = HasNoSize(options);
  const auto say = [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
    ASSIGN_OR_RETURN(const v1::DescribePoolResponse described,
                     connection_->Call(connection_->page_pool(),
                                       &v1::PagePool::Stub::DescribePool,
                                       v1::DescribePoolRequest()));
    // pandod has restarted, and this client does not know it yet.
    if (may_begin_anew && described.epoch() != session.epoch) return false;
    if (!described.pool().is_open()) return true;
    may_begin_anew = true;
    v1::AttachPoolRequest request;
    request.set_session_id(session.id);
    if (options.expected_layout) {
      ToProto(*options.expected_layout, request.mutable_layout());
    }
    request.set_model(options.model.value_or(""));
    RETURN_IF_ERROR(connection_
                        ->Call(connection_->page_pool(),
                               &v1::PagePool::Stub::AttachPool, request)
                        .status());
    return false;
  };
  while (true) {
    const absl::StatusOr<bool> is_said = say();
    if (is_said.ok() && *is_said) return absl::OkStatus();
    if (!is_said.ok() && !(may_begin_anew && IsAway(is_said.status()))) {
      return is_said.status();
    }
    if (absl::Now() > deadline) {
      return absl::UnavailableError(
          "the open pool has no layout; the log of pandod says why it does not "
          "begin anew");
    }
    absl::SleepFor(kBetweenTries);
  }
}

absl::StatusOr<MappedPool> Client::AttachPool(const AttachOptions& options) {
  RETURN_IF_ERROR(SayLayout(options));
  ASSIGN_OR_RETURN(const Session session, connection_->PresentSession());
  // The pool is described after the session was opened. If pandod restarts from
  // here on, it refuses the session or the token, so what is mapped is always
  // what was described.
  ASSIGN_OR_RETURN(const v1::DescribePoolResponse described,
                   connection_->Call(connection_->page_pool(),
                                     &v1::PagePool::Stub::DescribePool,
                                     v1::DescribePoolRequest()));
  ASSIGN_OR_RETURN(PoolDescription pool, FromProto(described.pool()));

  v1::AttachPoolRequest request;
  request.set_session_id(session.id);
  if (options.expected_layout || options.model) {
    KvLayout layout = options.expected_layout.value_or(pool.layout);
    if (HasNoSize(options)) layout = layout.WithStrides(pool.capacity_pages);
    const std::string model = options.model.value_or(pool.model);
    // The server compares only fingerprints, so it cannot say what differs.
    if (const std::string difference = LayoutDifference(layout, model, pool);
        !difference.empty()) {
      return WithReason(absl::FailedPreconditionError(difference),
                        "LAYOUT_MISMATCH");
    }
    request.set_fingerprint(Fingerprint(layout, model));
  }
  ASSIGN_OR_RETURN(
      const ReceivedMemory shards,
      connection_->FetchMemory(
          connection_->page_pool(), &v1::PagePool::Stub::AttachPool, request,
          [&] { return connection_->CheckSession(session.id); }));
  RETURN_IF_ERROR(CheckSizes(pool, shards.sizes));
  return MappedPool::Map(std::move(pool), described.epoch(), shards.descriptors,
                         options.shards, options.addresses);
}

absl::Status Client::LinkSession(uint64_t session_id) {
  v1::AttachPoolRequest request;
  request.set_session_id(session_id);
  ASSIGN_OR_RETURN(
      ReceivedMemory received,
      connection_->FetchMemory(connection_->page_pool(),
                               &v1::PagePool::Stub::AttachPool, request,
                               [] { return absl::OkStatus(); }));
  connection_->Keep(std::move(received.descriptors));
  return absl::OkStatus();
}

absl::StatusOr<Stats> Client::GetStats() {
  ASSIGN_OR_RETURN(
      const v1::GetStatsResponse response,
      connection_->Call(connection_->admin(), &v1::Admin::Stub::GetStats,
                        v1::GetStatsRequest()));
  return FromProto(response);
}

absl::StatusOr<Gauges> Client::ReadGauges() {
  if (const auto read = connection_->lane().ReadGauges(); read.has_value()) {
    return FromGaugePage(*read);
  }
  ASSIGN_OR_RETURN(Stats stats, GetStats());
  return Gauges{.pages = stats.pages,
                .epoch = stats.epoch,
                .is_draining = false,
                .eviction_policy = std::move(stats.eviction_policy)};
}

absl::StatusOr<FlushResult> Client::Flush() {
  return connection_->operators().Flush();
}

absl::StatusOr<FlushResult> Client::Flush(const Namespace& ns) {
  return connection_->operators().Flush(ns);
}

absl::StatusOr<std::string> Client::SetEvictionPolicy(
    const std::string& policy) {
  return connection_->operators().SetEvictionPolicy(policy);
}

absl::StatusOr<std::vector<std::string>> Client::CheckInvariants() {
  return connection_->operators().CheckInvariants();
}

std::unique_ptr<EventWatch> Client::WatchEvents(const WatchOptions& options) {
  return connection_->operators().WatchEvents(options);
}

}  // namespace client
}  // namespace pando
