#ifndef PANDO_TESTS_SERVICE_STEPPED_CALLS_FIXTURE_H_
#define PANDO_TESTS_SERVICE_STEPPED_CALLS_FIXTURE_H_

// A fixture for calls that take long, through a real server and channel.

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/operators/session_ends.h"
#include "core/prefix_cache.h"
#include "gtest/gtest.h"
#include "os/fair_mutex.h"
#include "pando/v1/admin.grpc.pb.h"
#include "pando/v1/data_path.grpc.pb.h"
#include "pando/v1/pool.grpc.pb.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "pando/v1/session.grpc.pb.h"
#include "service/handlers/admin_service.h"
#include "service/handlers/block_service.h"
#include "service/handlers/data_path_service.h"
#include "service/handlers/pool_service.h"
#include "service/handlers/prefix_cache_service.h"
#include "service/handlers/session_service.h"
#include "service/handlers/session_stream.h"
#include "service/handlers/stepped_calls.h"
#include "service/rpc/rpc_server.h"
#include "service/self_check.h"

namespace pando {

inline constexpr uint32_t kPages = 100'000;

// A call that runs while other calls are made.
template <typename Request, typename Response>
class Call {
 public:
  // `start` passes the call to a stub.
  template <typename Start>
  explicit Call(Start start) {
    start(&context, &request_, &response, [this](grpc::Status status) {
      status_ = std::move(status);
      done_.Notify();
    });
  }
  ~Call() { done_.WaitForNotification(); }

  bool is_over() const { return done_.HasBeenNotified(); }
  grpc::Status Wait() {
    done_.WaitForNotification();
    return status_;
  }

  grpc::ClientContext context;
  Response response;

 private:
  Request request_;
  grpc::Status status_;
  absl::Notification done_;
};
using FlushCall = Call<v1::FlushRequest, v1::FlushResponse>;
using CheckCall = Call<v1::CheckInvariantsRequest, v1::CheckInvariantsResponse>;
using ScoreCall = Call<v1::MatchPrefixesRequest, v1::MatchPrefixesResponse>;
using BatchCall = Call<v1::BatchRequest, v1::BatchResponse>;
using PolicyCall =
    Call<v1::SetEvictionPolicyRequest, v1::SetEvictionPolicyResponse>;
using ExplainCall = Call<v1::ExplainMatchRequest, v1::ExplainMatchResponse>;

// A server and its cache, which has a node for each page.
class SteppedCallsTest : public testing::Test {
 protected:
  SteppedCallsTest() {
    std::string folder =
        (std::filesystem::temp_directory_path() / "pando_stepped_XXXXXX")
            .string();
    folder_ = mkdtemp(folder.data());
    cache_.OpenSession(session_, "one");
    Fill();
    admin_.AddMethodsTo(data_path_);
    prefixes_.AddMethodsTo(data_path_);
    pool_.AddMethodsTo(data_path_);
    blocks_.AddMethodsTo(data_path_);
    admin_.Register(server_, metrics_, data_path_);
    pool_.Register(server_, metrics_, data_path_);
    prefixes_.Register(server_, metrics_, data_path_);
    batches_.Register(server_, metrics_, data_path_);
    sessions_.Register(metrics_);
    const std::string path = folder_ + "/grpc.sock";
    EXPECT_TRUE(
        server_.Start({.socket = {path}, .max_receive_bytes = 1 << 22}).ok());
    const auto channel =
        grpc::CreateChannel("unix:" + path, grpc::InsecureChannelCredentials());
    admin_stub_ = v1::Admin::NewStub(channel);
    prefix_stub_ = v1::PrefixCache::NewStub(channel);
    data_path_stub_ = v1::DataPath::NewStub(channel);
    pool_stub_ = v1::PagePool::NewStub(channel);
    sessions_stub_ = v1::Sessions::NewStub(channel);
  }
  ~SteppedCallsTest() override {
    server_.Shutdown(absl::ZeroDuration());
    std::filesystem::remove_all(folder_);
  }

  // Publishes as many prompts as there are pages.
  void Fill() {
    const NamespaceKey ns;
    for (uint32_t i = 1; i <= kPages; ++i) {
      const std::vector<Token> tokens = {i};
      const auto pages =
          cache_.Allocate({.session = session_, .ns = ns, .pages = 1});
      const auto insert = cache_.Insert({.session = session_,
                                         .ns = ns,
                                         .tokens = tokens,
                                         .pages = pages.value().pages});
      ASSERT_TRUE(insert.ok());
    }
  }

  // Locks each prompt, and returns the numbers of the locks.
  std::vector<uint64_t> LockAll() { return LockAll(session_); }
  std::vector<uint64_t> LockAll(SessionId session) {
    const NamespaceKey ns;
    std::vector<uint64_t> locks;
    for (uint32_t i = 1; i <= kPages; ++i) {
      const std::vector<Token> tokens = {i};
      const auto lock =
          cache_.Lock({.session = session, .ns = ns, .tokens = tokens});
      EXPECT_TRUE(lock.ok());
      locks.push_back(lock->lock.value());
    }
    return locks;
  }

  uint64_t EvictedPages() {
    grpc::ClientContext context;
    v1::GetStatsResponse stats;
    EXPECT_TRUE(
        admin_stub_->GetStats(&context, v1::GetStatsRequest(), &stats).ok());
    return stats.counters().evicted_pages_on_request();
  }
  // Returns whether a call is served after `start` has evicted some of the
  // pages and before it has evicted all. Tries several times, because an
  // eviction may begin too late for a call to fall in that time.
  template <typename Start>
  bool OneIsServedWhile(Start start) {
    for (int attempt = 0; attempt < 50; ++attempt) {
      const uint64_t before = EvictedPages();
      bool is_served = false;
      {
        const auto call = start();
        while (!call->is_over() && !is_served) {
          const uint64_t evicted = EvictedPages() - before;
          is_served = evicted > 0 && evicted < kPages;
        }
        EXPECT_TRUE(call->Wait().ok());
        EXPECT_EQ(call->response.evicted_pages(), kPages);
      }
      if (is_served) return true;
      Fill();
    }
    return false;
  }
  // Returns whether several calls are served, one after the other, before the
  // call ends that `start` begins. If the server carried out that call in one
  // go, it could serve at most one other call after the beginning. Tries
  // several times.
  template <typename Start>
  bool SeveralAreServedWhile(Start start) {
    constexpr int kSeveral = 5;
    for (int attempt = 0; attempt < 50; ++attempt) {
      int served = 0;
      const auto call = start();
      while (!call->is_over()) {
        EvictedPages();
        served += !call->is_over();
      }
      EXPECT_TRUE(call->Wait().ok());
      if (served >= kSeveral) return true;
    }
    return false;
  }
  template <typename Done>
  void Flush(grpc::ClientContext* context, const v1::FlushRequest* request,
             v1::FlushResponse* response, Done done) {
    admin_stub_->async()->Flush(context, request, response, std::move(done));
  }
  std::unique_ptr<FlushCall> StartFlush() {
    return std::make_unique<FlushCall>([&](auto... call) { Flush(call...); });
  }
  std::unique_ptr<CheckCall> StartCheck() {
    return std::make_unique<CheckCall>([&](auto* context, auto* request,
                                           auto* response, auto done) {
      admin_stub_->async()->CheckInvariants(context, request, response, done);
    });
  }
  // Starts a change from one to the other of the policies lru and mru.
  std::unique_ptr<PolicyCall> StartPolicyChange() {
    is_mru_ = !is_mru_;
    return std::make_unique<PolicyCall>([&](auto* context, auto* request,
                                            auto* response, auto done) {
      request->set_policy(is_mru_ ? "mru" : "lru");
      admin_stub_->async()->SetEvictionPolicy(context, request, response, done);
    });
  }
  // Starts a call that scores `prompts` empty prompts.
  std::unique_ptr<ScoreCall> StartScoring(int prompts) {
    return std::make_unique<ScoreCall>([&](auto* context, auto* request,
                                           auto* response, auto done) {
      for (int i = 0; i < prompts; ++i) request->add_queries();
      prefix_stub_->async()->MatchPrefixes(context, request, response, done);
    });
  }
  std::unique_ptr<BatchCall> StartBatch(const v1::BatchRequest& batch) {
    return std::make_unique<BatchCall>(
        [&](auto* context, auto* request, auto* response, auto done) {
          *request = batch;
          data_path_stub_->async()->Batch(context, request, response, done);
        });
  }
  // Starts a call that explains the match of the first prompt.
  std::unique_ptr<ExplainCall> StartExplain() {
    return std::make_unique<ExplainCall>(
        [&](auto* context, auto* request, auto* response, auto done) {
          request->add_tokens(1);
          admin_stub_->async()->ExplainMatch(context, request, response, done);
        });
  }

  bool is_mru_ = false;
  const SessionId session_{1};
  std::string folder_;
  uint64_t last_session_ = session_.value();
  // `on_ends` does nothing, because SessionService takes the steps in which
  // sessions end.
  PrefixCache cache_{
      {.page_tokens = 1, .capacity_pages = kPages + 1, .on_ends = [] {}}};
  SelfCheck self_check_{&cache_};
  RpcMetrics metrics_;
  DataPath data_path_;
  std::unique_ptr<v1::Admin::Stub> admin_stub_;
  std::unique_ptr<v1::PrefixCache::Stub> prefix_stub_;
  std::unique_ptr<v1::DataPath::Stub> data_path_stub_;
  std::unique_ptr<v1::PagePool::Stub> pool_stub_;
  std::unique_ptr<v1::Sessions::Stub> sessions_stub_;
  std::atomic<bool> is_draining_ = false;
  // The services below point to the server, so they are destroyed before it.
  CallPolicy policy_;
  std::unique_ptr<RpcServer> owned_server_ =
      std::make_unique<RpcServer>(&policy_);
  RpcServer& server_ = *owned_server_;
  SteppedCalls stepped_{&cache_, &server_};
  AdminService admin_{&cache_,
                      &self_check_,
                      &stepped_,
                      {.epoch = 1, .max_tokens = 1'000, .drain = nullptr}};
  PrefixCacheService prefixes_{&cache_, nullptr, &stepped_, nullptr, 1'000, 1};
  PoolService pool_{&cache_, &stepped_, nullptr, nullptr, {}, 1};
  BlockCache block_cache_{&cache_};
  BlockService blocks_{&cache_, &block_cache_, &stepped_, nullptr, 0, 1};
  SessionService sessions_{&cache_,
                           &stepped_,
                           &server_,
                           &is_draining_,
                           {.pool = {}, .on_closed = [](auto) {}}};
  DataPathService batches_{&policy_, &cache_, &stepped_, nullptr, false};
};

}  // namespace pando

#endif  // PANDO_TESTS_SERVICE_STEPPED_CALLS_FIXTURE_H_
