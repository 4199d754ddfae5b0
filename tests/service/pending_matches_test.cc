// Tests matches that wait, and waits that end on other threads than the one
// that runs the handlers.

#include "service/handlers/pending_matches.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "pando/v1/prefix_cache.grpc.pb.h"
#include "service/calls/method_metrics.h"
#include "service/handlers/prefix_cache_service.h"
#include "service/handlers/stepped_calls.h"
#include "service/rpc/rpc_server.h"

namespace pando {
namespace {

constexpr uint32_t kPages = 4;
constexpr uint32_t kMinute = 60'000;

class PendingMatchesTest : public testing::Test {
 protected:
  PendingMatchesTest()
      : cache_({.page_tokens = 1,
                .capacity_pages = 1024,
                .on_wait_over =
                    [this](WaitId wait, PendingOutcome outcome) {
                      pending_.WaitOver(wait, outcome);
                    }}),
        pending_(&cache_, &server_),
        stepped_(&cache_, &server_),
        service_(&cache_, &pending_, &stepped_, /*verifier=*/nullptr,
                 /*max_tokens=*/1024, /*epoch=*/1) {
    std::string folder =
        (std::filesystem::temp_directory_path() / "pando_pending_XXXXXX")
            .string();
    folder_ = mkdtemp(folder.data());
    const std::string path = folder_ + "/grpc.sock";
    service_.AddMethodsTo(data_path_);
    service_.Register(server_, metrics_, data_path_);
    drain_ = server_.AddWakeup([this] { pending_.ResumeAll(); });
    EXPECT_TRUE(
        server_.Start({.socket = {path}, .max_receive_bytes = 1 << 20}).ok());
    stub_ = v1::PrefixCache::NewStub(grpc::CreateChannel(
        "unix:" + path, grpc::InsecureChannelCredentials()));
  }
  ~PendingMatchesTest() override {
    server_.Shutdown(absl::ZeroDuration());
    std::filesystem::remove_all(folder_);
  }

  SessionId OpenSession() {
    const SessionId session(++last_session_);
    cache_.OpenSession(session, "");
    return session;
  }

  // Locks the tokens and reserves pages for them. Calls the cache directly, so
  // that no handler of the server has to run.
  LockId Admit(SessionId session) {
    const NamespaceKey ns;
    const absl::StatusOr<MatchResult> match =
        cache_.Match({.session = session,
                      .ns = ns,
                      .tokens = tokens_,
                      .lock = true,
                      .reserve_tokens = kPages});
    EXPECT_TRUE(match.ok()) << match.status();
    return match->lock;
  }

  grpc::Status Wait(SessionId session, v1::MatchPrefixResponse& response) {
    grpc::ClientContext context;
    v1::MatchPrefixRequest request;
    request.set_session_id(session.value());
    for (Token token : tokens_) request.add_tokens(token);
    request.set_lock(true);
    request.set_reserve_tokens(kPages);
    request.set_pending_wait_ms(kMinute);
    return stub_->MatchPrefix(&context, request, &response);
  }

  void AwaitWaits(uint32_t count) {
    while (cache_.Stats().waits != count) std::this_thread::yield();
  }

  const std::vector<Token> tokens_ = {1, 2, 3, 4};
  uint64_t last_session_ = 0;
  RpcMetrics metrics_;
  PrefixCache cache_;
  CallPolicy policy_;
  DataPath data_path_;
  RpcServer server_{&policy_};
  PendingMatches pending_;
  SteppedCalls stepped_;
  PrefixCacheService service_;
  Wakeup* drain_;
  std::string folder_;
  std::unique_ptr<v1::PrefixCache::Stub> stub_;
};

// The owner may end before the match, between the match and the wait, or later.
TEST_F(PendingMatchesTest, AnOwnerThatEndsOnAnotherThreadAtAnyTimeLosesNoWait) {
  const SessionId waiter = OpenSession();
  for (int round = 0; round < 300; ++round) {
    const SessionId owner = OpenSession();
    Admit(owner);
    std::thread other([&] { cache_.CloseSession(owner); });
    v1::MatchPrefixResponse response;
    const grpc::Status status = Wait(waiter, response);
    other.join();
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.reserved_page_ids_size(), static_cast<int>(kPages));
    EXPECT_TRUE(response.pending() == v1::PENDING_OUTCOME_OWNER_LOST ||
                response.pending() == v1::PENDING_OUTCOME_UNSPECIFIED)
        << response.pending();
    const std::vector<LockId> locks = {LockId(response.lock_id())};
    ASSERT_TRUE(cache_.Unlock(waiter, locks).ok());
    std::vector<PageId> pages;
    for (uint32_t page : response.reserved_page_ids()) pages.emplace_back(page);
    ASSERT_TRUE(cache_.Free(waiter, pages).ok());
  }
  EXPECT_EQ(cache_.Stats().waits, 0u);
}

TEST_F(PendingMatchesTest, AWaitOfASessionThatEndsOnAnotherThreadIsAnswered) {
  const SessionId owner = OpenSession();
  Admit(owner);
  const SessionId waiter = OpenSession();
  std::thread other([&] {
    AwaitWaits(1);
    cache_.CloseSession(waiter);
  });
  v1::MatchPrefixResponse response;
  const grpc::Status status = Wait(waiter, response);
  other.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(cache_.Stats().waits, 0u);
}

TEST_F(PendingMatchesTest, ADrainAnswersAllWaits) {
  Admit(OpenSession());
  std::thread other([&] {
    AwaitWaits(1);
    cache_.BeginDrain();
    drain_->Request();
  });
  v1::MatchPrefixResponse response;
  const grpc::Status status = Wait(OpenSession(), response);
  other.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(cache_.Stats().waits, 0u);
}

TEST_F(PendingMatchesTest, AStopWithoutADrainEndsAllWaits) {
  Admit(OpenSession());
  std::thread other([&] {
    AwaitWaits(1);
    server_.Shutdown(absl::ZeroDuration());
  });
  v1::MatchPrefixResponse response;
  EXPECT_FALSE(Wait(OpenSession(), response).ok());
  other.join();
  EXPECT_EQ(cache_.Stats().waits, 0u);
}

}  // namespace
}  // namespace pando
