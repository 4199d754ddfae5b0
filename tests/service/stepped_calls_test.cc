// Tests calls that take long, through a real server and channel. Other calls
// are served before such a call ends.

#include "tests/service/stepped_calls_fixture.h"

namespace pando {
namespace {

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
    if (allocated != nullptr) {  // this is a later attempt
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

TEST_F(SteppedCallsTest, OthersAreServedWhileInvariantsAreChecked) {
  EXPECT_TRUE(SeveralAreServedWhile([&] { return StartCheck(); }));
}

// This thread takes the turn as a lane's thread does, beside the polling
// thread.
TEST_F(SteppedCallsTest, AnotherThreadHasTheTurnBetweenTwoSteps) {
  constexpr int kSeveral = 5;
  FairMutex& turn = policy_.turn().mutex();
  int steps = 0;
  turn.Lock();
  const auto check = StartCheck();
  while (steps < kSeveral && !check->is_over()) {
    if (turn.threads() < 2) {
      // The call is on its way to the polling thread, or back from it.
      FairMutexPause pause(&turn);
      continue;
    }
    turn.Unlock();
    turn.Lock();
    ++steps;
  }
  turn.Unlock();
  EXPECT_TRUE(check->Wait().ok());
  EXPECT_EQ(steps, kSeveral);
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

// There are more calls than the server is prepared to receive at its start.
TEST_F(SteppedCallsTest, ManyAreScoredOneAfterTheOther) {
  std::vector<std::unique_ptr<ScoreCall>> calls;
  for (int i = 0; i < 3 * kArmedCalls; ++i) calls.push_back(StartScoring(4096));
  for (const auto& call : calls) {
    EXPECT_TRUE(call->Wait().ok());
    EXPECT_EQ(call->response.scores_size(), 4096);
  }
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
