// Takes the bytes as a list of requests, each encoded as it would arrive. The
// handlers must answer each request or refuse it with a stable reason, and the
// cache must stay whole. Random requests would be refused early. Therefore the
// fuzzer often changes a request to name a live session, a lock or a page that
// was handed out, or tokens that were seen before.

#include <fuzzer/FuzzedDataProvider.h>
#include <google/protobuf/stubs/logging.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/prefix_cache.h"
#include "core/requests/errors.h"
#include "service/handlers/admin_service.h"
#include "service/handlers/pending_matches.h"
#include "service/handlers/pool_service.h"
#include "service/handlers/prefix_cache_service.h"
#include "service/handlers/stepped_calls.h"
#include "service/handlers/wire.h"
#include "service/memory/memory_socket.h"
#include "service/rpc/rpc_server.h"
#include "service/self_check.h"

namespace pando {
namespace {

constexpr uint64_t kEpoch = 7;
constexpr uint32_t kSessions = 2;
constexpr uint32_t kMaxTokens = 64;
constexpr uint32_t kCapacity = 24;
constexpr int kMaxCalls = 300;
constexpr int kCheckEvery = 8;

// All runs share the memory socket, because it has a thread.
MemorySocket* Memory() {
  static const std::unique_ptr<MemorySocket> memory =
      MemorySocket::Start(
          {.socket = {absl::StrCat("/tmp/pando-fuzz-", getpid(), ".sock")}},
          [](const AttachGrant&, const UnixPeer&) {
            return std::vector<SharedDescriptor>();
          })
          .value();
  return memory.get();
}

// A call that may not wait. It aborts if a handler resumes it or keeps it.
class NoWaiting final : public WaitingCall {
 public:
  void Resume() override { std::abort(); }
  bool is_cancelled() const override { return false; }
  bool spans_namespaces() const override { return true; }
  Caller caller() const override { return {}; }
  absl::Status Keep(PrefixCache&, SessionId) override { std::abort(); }
};

// Takes all steps of a call, and returns its status.
absl::Status Finish(
    const std::function<std::optional<absl::Status>()>& handler) {
  std::optional<absl::Status> status;
  while (!status.has_value()) status = handler();
  return *status;
}

class Calls {
 public:
  explicit Calls(FuzzedDataProvider& bytes) : bytes_(bytes) {
    for (uint64_t id = 1; id <= kSessions; ++id) {
      cache_.OpenSession(SessionId(id), "fuzz");
    }
  }

  void RunOne() {
    switch (bytes_.ConsumeIntegralInRange(0, 9)) {
      case 0:
        return MatchPrefix();
      case 1:
        return Insert();
      case 2:
        return Lock();
      case 3:
        return Unlock();
      case 4:
        return AllocatePages();
      case 5:
        return FreePages();
      case 6:
        return Call<v1::MatchPrefixesRequest, v1::MatchPrefixesResponse>(
            [this](auto& in, auto& out) {
              for (auto& query : *in.mutable_queries()) {
                PutRight(query.mutable_tokens());
                if (Rarely()) PutRightHandle(query);
              }
              return Finish(
                  [&] { return prefixes_.MatchPrefixes(in, out, call_); });
            });
      case 7:
        return Call<v1::EvictRequest, v1::EvictResponse>(
            [this](auto& in, auto& out) {
              return Finish([&] { return prefixes_.Evict(in, out, call_); });
            });
      case 8:
        return Admin();
      default:
        return Call<v1::AttachPoolRequest, v1::AttachPoolResponse>(
            [this](auto& in, auto& out) {
              PutRightSession(in);
              const absl::Status status = pool_.AttachPool(in, out, call_);
              // Earlier runs may have left too many tokens.
              return absl::IsResourceExhausted(status) ? absl::OkStatus()
                                                       : status;
            });
    }
  }

  void CheckInvariants() {
    const std::vector<std::string> violations = cache_.CheckInvariants();
    if (violations.empty()) return;
    for (const std::string& violation : violations) {
      std::cerr << "! " << violation << '\n';
    }
    std::abort();
  }

 private:
  // Parses a request from the bytes and gives it to `handler`.
  template <typename Request, typename Response, typename Handler>
  void Call(Handler handler) {
    Request request;
    const std::string raw = bytes_.ConsumeRandomLengthString(256);
    if (!request.ParseFromString(raw)) return;  // gRPC would refuse it
    Response response;
    const absl::Status status = handler(request, response);
    if (status.ok() || ReasonOf(status).has_value()) return;
    std::cerr << request.DebugString() << "! " << status << '\n';
    std::abort();
  }

  void MatchPrefix() {
    Call<v1::MatchPrefixRequest, v1::MatchPrefixResponse>(
        [this](auto& in, auto& out) {
          in.clear_pending_wait_ms();
          PutRightSession(in);
          PutRight(in.mutable_tokens());
          if (Rarely()) PutRightHandle(in);
          if (Often()) in.set_lock(true);
          const absl::Status status = *prefixes_.MatchPrefix(in, out, call_);
          if (out.lock_id() != 0) locks_.push_back(out.lock_id());
          Remember(out.reserved_page_ids());
          if (out.has_handle()) handle_ = out.handle();
          return status;
        });
  }

  void Insert() {
    Call<v1::InsertRequest, v1::InsertResponse>([this](auto& in, auto& out) {
      PutRightSession(in);
      PutRight(in.mutable_tokens());
      if (Often()) {
        in.clear_page_ids();
        const uint32_t tokens = in.prompt_tokens() % (2 * kMaxTokens) +
                                static_cast<uint32_t>(in.tokens_size());
        for (uint32_t i = 0; i < tokens / kPageTokens; ++i) {
          in.add_page_ids(AnyPage());
        }
      }
      if (!locks_.empty() && Often()) in.set_lock_id(AnyLock());
      if (Rarely()) PutRightHandle(in);
      const absl::Status status =
          Finish([&] { return prefixes_.Insert(in, out, call_); });
      if (out.has_handle()) handle_ = out.handle();
      return status;
    });
  }

  void Lock() {
    Call<v1::LockRequest, v1::LockResponse>([this](auto& in, auto& out) {
      PutRightSession(in);
      PutRight(in.mutable_tokens());
      if (Rarely()) PutRightHandle(in);
      const absl::Status status = prefixes_.Lock(in, out);
      if (out.lock_id() != 0) locks_.push_back(out.lock_id());
      return status;
    });
  }

  void Unlock() {
    Call<v1::UnlockRequest, v1::UnlockResponse>([this](auto& in, auto& out) {
      PutRightSession(in);
      if (!locks_.empty() && Often()) in.add_lock_ids(AnyLock());
      return Finish([&] { return prefixes_.Unlock(in, out, call_); });
    });
  }

  void AllocatePages() {
    Call<v1::AllocatePagesRequest, v1::AllocatePagesResponse>(
        [this](auto& in, auto& out) {
          PutRightSession(in);
          if (Often()) in.set_pages(in.pages() % 8);
          const absl::Status status =
              Finish([&] { return pool_.AllocatePages(in, out, call_); });
          Remember(out.page_ids());
          return status;
        });
  }

  void FreePages() {
    Call<v1::FreePagesRequest, v1::FreePagesResponse>(
        [this](auto& in, auto& out) {
          PutRightSession(in);
          if (Often()) in.add_page_ids(AnyPage());
          return Finish([&] { return pool_.FreePages(in, out, call_); });
        });
  }

  void Admin() {
    switch (bytes_.ConsumeIntegralInRange(0, 8)) {
      case 0:
        return Call<v1::FlushRequest, v1::FlushResponse>(
            [this](auto& in, auto& out) {
              return Finish([&] { return admin_.Flush(in, out, call_); });
            });
      case 1:
        return Call<v1::GetStatsRequest, v1::GetStatsResponse>(
            [this](auto& in, auto& out) {
              return Finish([&] { return admin_.GetStats(in, out, call_); });
            });
      case 2:
        return Call<v1::SetEvictionPolicyRequest,
                    v1::SetEvictionPolicyResponse>([this](auto& in, auto& out) {
          if (Often()) in.set_policy(AnyPolicy());
          return Finish(
              [&] { return admin_.SetEvictionPolicy(in, out, call_); });
        });
      case 3:
        return Call<v1::ListNamespacesRequest, v1::ListNamespacesResponse>(
            [this](auto& in, auto& out) {
              return Finish(
                  [&] { return admin_.ListNamespaces(in, out, call_); });
            });
      case 4:
        return Call<v1::ListLocksRequest, v1::ListLocksResponse>(
            [this](auto& in, auto& out) {
              return Finish([&] { return admin_.ListLocks(in, out, call_); });
            });
      case 5:
        return Call<v1::ReleaseLocksRequest, v1::ReleaseLocksResponse>(
            [this](auto& in, auto& out) {
              if (Often()) in.set_session_number(1);
              return Finish(
                  [&] { return admin_.ReleaseLocks(in, out, call_); });
            });
      case 6:
        return Call<v1::ListSessionsRequest, v1::ListSessionsResponse>(
            [this](auto& in, auto& out) {
              return Finish(
                  [&] { return admin_.ListSessions(in, out, call_); });
            });
      case 7:
        return Call<v1::ExplainMatchRequest, v1::ExplainMatchResponse>(
            [this](auto& in, auto& out) {
              PutRight(in.mutable_tokens());
              return Finish(
                  [&] { return admin_.ExplainMatch(in, out, call_); });
            });
      default:
        return Call<v1::CheckInvariantsRequest, v1::CheckInvariantsResponse>(
            [this](auto& in, auto& out) {
              return Finish(
                  [&] { return admin_.CheckInvariants(in, out, call_); });
            });
    }
  }

  std::string AnyPolicy() {
    return std::string(EvictionPolicyName(
        static_cast<EvictionPolicyKind>(bytes_.ConsumeIntegralInRange(0, 6))));
  }
  bool Often() { return bytes_.ConsumeIntegralInRange(0, 7) > 0; }
  bool Rarely() { return bytes_.ConsumeIntegralInRange(0, 7) == 0; }

  template <typename Request>
  void PutRightSession(Request& request) {
    if (Often()) request.set_session_id(1 + request.session_id() % kSessions);
  }
  template <typename Request>
  void PutRightHandle(Request& request) {
    const uint32_t tokens = request.after().tokens();
    *request.mutable_after() = handle_;
    if (Rarely()) request.mutable_after()->set_tokens(tokens);
  }
  // Leaves few different tokens, none of them large.
  void PutRight(google::protobuf::RepeatedField<uint32_t>* tokens) {
    if (!Often()) return;
    for (uint32_t& token : *tokens) token %= 2;
  }
  uint64_t AnyLock() {
    return locks_[bytes_.ConsumeIntegralInRange<size_t>(0, locks_.size() - 1)];
  }
  uint32_t AnyPage() {
    if (pages_.empty()) return bytes_.ConsumeIntegralInRange(0u, kCapacity);
    const uint32_t page = pages_.back();
    pages_.pop_back();
    return page;
  }
  void Remember(const google::protobuf::RepeatedField<uint32_t>& pages) {
    pages_.insert(pages_.end(), pages.begin(), pages.end());
  }

  static constexpr uint32_t kPageTokens = 2;

  FuzzedDataProvider& bytes_;
  NoWaiting call_;
  PrefixCache cache_{
      {.page_tokens = kPageTokens,
       .capacity_pages = kCapacity,
       .quota_classes =
           {{.name = "a", .pattern = "a*", .floor_pages = 2, .cap_pages = 6}},
       .session_limits = {.max_locks = 8,
                          .max_reserved_pages = 12,
                          .max_kept_bytes = 10'000}}};
  CallPolicy policy_;
  RpcServer server_{&policy_};  // is not started
  SelfCheck self_check_{&cache_};
  SteppedCalls stepped_{&cache_, &server_};
  PendingMatches pending_{&cache_, &server_};
  PrefixCacheService prefixes_{&cache_, &pending_,  &stepped_,
                               nullptr, kMaxTokens, kEpoch};
  PoolService pool_{
      &cache_, &stepped_, Memory(), nullptr, v1::PoolDescription(), kEpoch};
  AdminService admin_{
      &cache_,
      &self_check_,
      &stepped_,
      {.epoch = kEpoch, .max_tokens = kMaxTokens, .drain = [](bool) {}}};
  // The locks, the pages and the last handle that the handlers gave out.
  std::vector<uint64_t> locks_;
  std::vector<uint32_t> pages_;
  v1::PrefixHandle handle_;
};

}  // namespace
}  // namespace pando

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // Otherwise protobuf would log each text that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  pando::Calls calls(bytes);
  for (int i = 0; i < pando::kMaxCalls && bytes.remaining_bytes() > 0; ++i) {
    calls.RunOne();
    if (i % pando::kCheckEvery == 0) calls.CheckInvariants();
  }
  calls.CheckInvariants();
  return 0;
}
