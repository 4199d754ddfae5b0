// Calls that take long, through a real server and channel: other calls are
// served before they end.

#include "service/handlers/stepped_calls.h"

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
#include "service/rpc/rpc_server.h"
#include "service/self_check.h"

namespace pando {
namespace {

constexpr uint32_t kPages = 100'000;

// A call that runs beside others.
template <typename Request, typename Response>
class Call {
 public:
  // `start` hands the call to a stub.
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

// A server with a cache of as many nodes as pages.
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

  // As many prompts as pages.
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

  // A lock on each prompt; their numbers.
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
  // Whether a call is served when `start`, which begins to evict everything,
  // has evicted some of the pages and not all. It may begin too late for that,
  // so that it is tried several times.
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
  // Whether several calls are served, one after the other, before the one ends
  // that `start` begins: in one go it would leave room for one at most, once it
  // has begun. It is tried several times.
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
  // Changes the policy to the other of two.
  std::unique_ptr<PolicyCall> StartPolicyChange() {
    is_mru_ = !is_mru_;
    return std::make_unique<PolicyCall>([&](auto* context, auto* request,
                                            auto* response, auto done) {
      request->set_policy(is_mru_ ? "mru" : "lru");
      admin_stub_->async()->SetEvictionPolicy(context, request, response, done);
    });
  }
  // Scores `prompts` prompts.
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
  // Explains the first prompt.
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
  // SessionService takes the steps of ends.
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
  // The services hold streams of the server, which is gone before them.
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

TEST_F(SteppedCallsTest, OthersAreServedWhileAnOperatorFlushes) {
  EXPECT_TRUE(OneIsServedWhile([&] { return StartFlush(); }));
}

TEST_F(SteppedCallsTest, OthersAreServedWhileAnOperatorEvicts) {
  EXPECT_TRUE(OneIsServedWhile([&] {
    return std::make_unique<Call<v1::EvictRequest, v1::EvictResponse>>(
        [&](auto* context, auto* request, auto* response, auto done) {
          request->set_pages(kPages);
          prefix_stub_->async()->Evict(context, request, response, done);
        });
  }));
}

TEST_F(SteppedCallsTest, OthersAreServedWhilePagesAreAllocatedAndFreed) {
  using AllocateCall =
      Call<v1::AllocatePagesRequest, v1::AllocatePagesResponse>;
  using FreeCall = Call<v1::FreePagesRequest, v1::FreePagesResponse>;
  std::shared_ptr<AllocateCall> allocated;
  EXPECT_TRUE(SeveralAreServedWhile([&] {
    if (allocated != nullptr) {  // another attempt
      cache_.CloseSession(session_);
      cache_.Run(SessionEnds());
      cache_.OpenSession(session_, "one");
      Fill();
    }
    allocated = std::make_shared<AllocateCall>(
        [&](auto* context, auto* request, auto* response, auto done) {
          request->set_session_id(session_.value());
          request->set_pages(kPages);
          pool_stub_->async()->AllocatePages(context, request, response, done);
        });
    return allocated;
  }));
  ASSERT_EQ(allocated->response.page_ids_size(), static_cast<int>(kPages));
  FreeCall freed([&](auto* context, auto* request, auto* response, auto done) {
    request->set_session_id(session_.value());
    *request->mutable_page_ids() = allocated->response.page_ids();
    pool_stub_->async()->FreePages(context, request, response, done);
  });
  EXPECT_TRUE(freed.Wait().ok());
  EXPECT_EQ(cache_.Stats().pages.free, kPages);
}

TEST_F(SteppedCallsTest, OthersAreServedWhileManyLocksAreReleased) {
  EXPECT_TRUE(SeveralAreServedWhile([&] {
    const std::vector<uint64_t> locks = LockAll();
    return std::make_unique<Call<v1::UnlockRequest, v1::UnlockResponse>>(
        [&](auto* context, auto* request, auto* response, auto done) {
          request->set_session_id(session_.value());
          request->mutable_lock_ids()->Add(locks.begin(), locks.end());
          prefix_stub_->async()->Unlock(context, request, response, done);
        });
  }));
  EXPECT_EQ(cache_.Stats().locks, 0u);
}

TEST_F(SteppedCallsTest, OthersAreServedWhileASessionWithManyLocksEnds) {
  using EndCall = Call<v1::EndSessionRequest, v1::EndSessionResponse>;
  EXPECT_TRUE(SeveralAreServedWhile([&] {
    cache_.OpenSession(SessionId(++last_session_), "one that ends");
    LockAll(SessionId(last_session_));
    return std::make_unique<EndCall>(
        [&](auto* context, auto* request, auto* response, auto done) {
          request->set_session_id(last_session_);
          sessions_stub_->async()->End(context, request, response, done);
        });
  }));
  EXPECT_EQ(cache_.Stats().locks, 0u);
}

TEST_F(SteppedCallsTest, LocksAreReleasedThoughTheirCallerIsGone) {
  const std::vector<uint64_t> locks = LockAll();
  {
    Call<v1::UnlockRequest, v1::UnlockResponse> call(
        [&](auto* context, auto* request, auto* response, auto done) {
          request->set_session_id(session_.value());
          request->mutable_lock_ids()->Add(locks.begin(), locks.end());
          prefix_stub_->async()->Unlock(context, request, response, done);
        });
    while (cache_.Stats().locks == locks.size()) EvictedPages();
    call.context.TryCancel();
  }
  while (cache_.Stats().locks > 0) EvictedPages();
  EXPECT_TRUE(cache_.CheckInvariants().empty());
}

TEST_F(SteppedCallsTest, AnAllocationWhoseCallerIsGoneGivesBackItsPages) {
  using AllocateCall =
      Call<v1::AllocatePagesRequest, v1::AllocatePagesResponse>;
  {
    AllocateCall call(
        [&](auto* context, auto* request, auto* response, auto done) {
          request->set_session_id(session_.value());
          request->set_pages(kPages);
          pool_stub_->async()->AllocatePages(context, request, response, done);
        });
    while (cache_.Stats().pages.reserved == 0 && !call.is_over()) continue;
    call.context.TryCancel();
    if (call.Wait().ok()) GTEST_SKIP() << "it was over before";
  }
  while (cache_.Stats().pages.reserved > 0) EvictedPages();
  EXPECT_GT(cache_.Stats().pages.free, 0u);
}

// A batch of which one call takes steps carries out the next one after it.
TEST_F(SteppedCallsTest, ABatchGoesOnWhenItsLongCallIsOver) {
  v1::BatchRequest batch;
  for (const uint32_t pages : {kPages - 10, 10u}) {
    auto* const allocate = batch.add_requests()->mutable_allocate_pages();
    allocate->set_session_id(session_.value());
    allocate->set_pages(pages);
  }
  auto* const refused = batch.add_requests()->mutable_allocate_pages();
  refused->set_session_id(session_.value());
  refused->set_pages(1);
  const auto call = StartBatch(batch);
  ASSERT_TRUE(call->Wait().ok());
  EXPECT_EQ(call->response.responses(0).allocate_pages().page_ids_size(),
            static_cast<int>(kPages) - 10);
  EXPECT_EQ(call->response.responses(1).allocate_pages().page_ids_size(), 10);
  EXPECT_TRUE(call->response.responses(2).has_error());
}

TEST_F(SteppedCallsTest, OthersAreServedWhileInvariantsAreChecked) {
  EXPECT_TRUE(SeveralAreServedWhile([&] { return StartCheck(); }));
}

TEST_F(SteppedCallsTest, OthersAreServedWhileThePolicyIsChanged) {
  EXPECT_TRUE(SeveralAreServedWhile([&] { return StartPolicyChange(); }));
}

TEST_F(SteppedCallsTest, OthersAreServedWhileAMatchIsExplained) {
  LockAll();
  EXPECT_TRUE(SeveralAreServedWhile([&] { return StartExplain(); }));
  const auto explanation = StartExplain();
  EXPECT_TRUE(explanation->Wait().ok());
  EXPECT_EQ(explanation->response.end(), v1::MATCH_END_COMPLETE);
  EXPECT_EQ(explanation->response.locks_size(), 1);
}

TEST_F(SteppedCallsTest, OthersAreServedWhileManyPromptsAreScored) {
  EXPECT_TRUE(SeveralAreServedWhile([&] { return StartScoring(4096); }));
  const auto scoring = StartScoring(4096);
  EXPECT_TRUE(scoring->Wait().ok());
  EXPECT_EQ(scoring->response.scores_size(), 4096);
}

// No more of them are kept than are armed, whichever session sends them.
TEST_F(SteppedCallsTest, ManyAreScoredOneAfterTheOther) {
  std::vector<std::unique_ptr<ScoreCall>> calls;
  for (int i = 0; i < 3 * kArmedCalls; ++i) calls.push_back(StartScoring(4096));
  for (const auto& call : calls) {
    EXPECT_TRUE(call->Wait().ok());
    EXPECT_EQ(call->response.scores_size(), 4096);
  }
}

TEST_F(SteppedCallsTest, OthersAreServedBetweenTheCallsOfABatch) {
  v1::BatchRequest batch;
  for (int i = 0; i < 256; ++i) {
    auto* const scoring = batch.add_requests()->mutable_match_prefixes();
    for (int query = 0; query < 40; ++query) scoring->add_queries();
  }
  EXPECT_TRUE(SeveralAreServedWhile([&] { return StartBatch(batch); }));
}

TEST_F(SteppedCallsTest, TheCallsOfABatchAreCarriedOutInOrder) {
  constexpr int kInserts = 128;
  v1::BatchRequest batch;
  std::vector<PageId> pages =
      cache_
          .Allocate({.session = session_,
                     .ns = NamespaceKey(),
                     .pages = kInserts * (kInserts + 1) / 2})
          .value()
          .pages;
  for (int tokens = 1; tokens <= kInserts; ++tokens) {
    auto* const insert = batch.add_requests()->mutable_insert();
    insert->set_session_id(session_.value());
    for (int i = 0; i < tokens; ++i) {
      insert->add_tokens(kPages + 1 + i);
      insert->add_page_ids(pages.back().value());
      pages.pop_back();
    }
  }
  const auto call = StartBatch(batch);
  ASSERT_TRUE(call->Wait().ok());
  for (int i = 0; i < kInserts; ++i) {
    const auto& answer = call->response.responses(i);
    ASSERT_TRUE(answer.has_insert()) << answer.DebugString();
    EXPECT_EQ(answer.insert().existing_tokens(), i);
  }
}

TEST_F(SteppedCallsTest, ABatchThatIsRepeatedBeforeItsEndDoesNothingTwice) {
  v1::BatchRequest batch;
  for (int i = 1; i <= 256; ++i) {
    auto* const allocate = batch.add_requests()->mutable_allocate_pages();
    allocate->set_session_id(session_.value());
    allocate->set_pages(100);
    allocate->set_request_id(i);
  }
  const auto first = StartBatch(batch);
  const auto repeat = StartBatch(batch);
  ASSERT_TRUE(first->Wait().ok());
  ASSERT_TRUE(repeat->Wait().ok());
  for (int i = 0; i < batch.requests_size(); ++i) {
    const auto& answer = first->response.responses(i).allocate_pages();
    const auto& again = repeat->response.responses(i).allocate_pages();
    ASSERT_EQ(answer.page_ids_size(), 100);
    EXPECT_TRUE(std::ranges::equal(answer.page_ids(), again.page_ids()));
  }
  EXPECT_EQ(cache_.Stats().pages.reserved, 25'600u);
}

TEST_F(SteppedCallsTest, CallsThatTakeLongTakeTurns) {
  const auto one = StartFlush();
  const auto two = StartFlush();
  const auto check = StartCheck();
  const auto another = StartCheck();
  EXPECT_TRUE(one->Wait().ok());
  EXPECT_TRUE(two->Wait().ok());
  EXPECT_EQ(one->response.evicted_pages() + two->response.evicted_pages(),
            kPages);
  EXPECT_TRUE(check->Wait().ok());
  EXPECT_TRUE(another->Wait().ok());
  EXPECT_EQ(check->response.violations_size(), 0);
}

TEST_F(SteppedCallsTest, OneThatIsCancelledLeavesTheRest) {
  const auto cancelled = StartFlush();
  cancelled->context.TryCancel();
  cancelled->Wait();
  const auto rest = StartFlush();
  EXPECT_TRUE(rest->Wait().ok());
  EXPECT_EQ(EvictedPages(), kPages);
}

TEST_F(SteppedCallsTest, AServerThatStopsCutsThemOff) {
  const auto flush = StartFlush();
  const auto check = StartCheck();
  server_.Shutdown(absl::ZeroDuration());
  flush->Wait();
  check->Wait();
}

}  // namespace
}  // namespace pando
