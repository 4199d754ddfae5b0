// Tests calls of the C++ client over shared memory, against a real pandod.
#include <array>
#include <atomic>
#include <thread>

#include "pando/client.h"
#include "tests/clients/pandod_fixture.h"

namespace pando {
namespace {

using testing::HasSubstr;

// Computes and publishes the part of `prompt` that is not cached.
absl::Status Serve(Client& client, const std::vector<Token>& prompt) {
  absl::StatusOr<Match> match = client.MatchPrefix(
      prompt,
      {.lock = true, .reserve_tokens = static_cast<uint32_t>(prompt.size())});
  if (!match.ok()) return match.status();
  return client
      .Insert(std::span(prompt).subspan(match->matched_tokens),
              match->reserved.ids,
              {.lock = &match->lock, .lock_action = LockAction::kUnlock})
      .status();
}

void Publish(Client& client, const std::vector<Token>& prompt) {
  const absl::Status served = Serve(client, prompt);
  ASSERT_TRUE(served.ok()) << served;
}

class ClientLaneTest : public PandodTest {};

TEST_F(ClientLaneTest, IsThereUnlessItIsNotWanted) {
  const auto with = Connect();
  const auto without = Connect({.lane = false});
  EXPECT_EQ(with->transport(), Transport::kLane);
  EXPECT_TRUE(with->why_no_lane().ok());
  EXPECT_EQ(without->transport(), Transport::kGrpc);
  EXPECT_THAT(without->why_no_lane().message(), HasSubstr("lane is false"));
}

TEST_F(ClientLaneTest, BothTransportsAnswerTheSame) {
  const auto lane = Connect();
  const auto grpc = Connect({.lane = false});
  Publish(*lane, Prompt(64));
  for (Client* client : {lane.get(), grpc.get()}) {
    const absl::StatusOr<Match> match =
        client->MatchPrefix(Prompt(80), {.lock = true, .reserve_tokens = 80});
    ASSERT_TRUE(match.ok()) << match.status();
    EXPECT_EQ(match->matched_tokens, 64u);
    EXPECT_EQ(match->page_ids.size(), 4u);
    EXPECT_EQ(match->reserved.ids.size(), 1u);
    ASSERT_TRUE(client->FreePages(match->reserved).ok());
    const auto scores = client->MatchPrefixes(
        std::vector<PrefixQuery>{{.tokens = Prompt(64)}, {.tokens = {}}});
    ASSERT_TRUE(scores.ok()) << scores.status();
    EXPECT_EQ((*scores)[0].matched_tokens, 64u);
  }
  const auto refused = [](Client& client) {
    return client.FreePages({.session_id = client.session_id(), .ids = {3}});
  };
  EXPECT_EQ(refused(*lane), refused(*grpc));
  EXPECT_EQ(ReasonOf(refused(*lane)), "PAGE_NOT_OWNED");
}

TEST_F(ClientLaneTest, GaugesAreWhatStatsSay) {
  const auto lane = Connect();
  const auto grpc = Connect({.lane = false});
  Publish(*lane, Prompt(64));
  const Stats stats = *grpc->GetStats();
  for (Client* client : {lane.get(), grpc.get()}) {
    const absl::StatusOr<Gauges> gauges = client->ReadGauges();
    ASSERT_TRUE(gauges.ok()) << gauges.status();
    EXPECT_EQ(gauges->pages.Sum(), gauges->pages.capacity);
    EXPECT_EQ(gauges->pages.evictable, stats.pages.evictable);
    EXPECT_EQ(gauges->epoch, client->epoch());
    EXPECT_EQ(gauges->eviction_policy, "lru");
  }
}

TEST_F(ClientLaneTest, AnswersOfOneThreadDoNotKeepAnotherWaiting) {
  const auto owner = Connect();
  const auto client = Connect();
  absl::StatusOr<Match> first =
      owner->MatchPrefix(Prompt(16), {.lock = true, .reserve_tokens = 16});
  std::atomic<bool> is_over = false;
  std::thread waiter([&] {
    const auto match = client->MatchPrefix(
        Prompt(16), {.lock = true, .pending_wait = absl::Minutes(5)});
    EXPECT_EQ(match->pending, PendingOutcome::kGivenUp);
    is_over = true;
  });
  while (client->GetStats()->waiting_matches == 0) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(client->MatchPrefix(Prompt(32)).ok());
  }
  EXPECT_FALSE(is_over);
  EXPECT_TRUE(first->lock.Release().ok());
  waiter.join();
}

TEST_F(ClientLaneTest, ACallThatWaitsWhenPandodIsKilledEnds) {
  const auto owner = Connect();
  const auto client = Connect();
  absl::StatusOr<Match> first =
      owner->MatchPrefix(Prompt(16), {.lock = true, .reserve_tokens = 16});
  std::thread waiter([&] {
    const auto match = client->MatchPrefix(
        Prompt(16), {.lock = true, .pending_wait = absl::Minutes(5)});
    EXPECT_FALSE(match.ok());
  });
  while (client->GetStats()->waiting_matches == 0) std::this_thread::yield();
  pandod_.reset();
  waiter.join();
  EXPECT_EQ(client->transport(), Transport::kGrpc);
}

TEST_F(ClientLaneTest, IsOpenedAnewAfterARestart) {
  const auto client = Connect();
  const uint64_t epoch = client->epoch();
  pandod_.reset();
  StartPandod();
  while (client->transport() != Transport::kLane || client->epoch() == epoch) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  Publish(*client, Prompt(32));
}

TEST_F(ClientLaneTest, CallsUnderWayWhenPandodIsKilledEndAndTheNextServesThem) {
  constexpr int kWorkers = 3;
  const auto client = Connect();
  std::atomic<bool> is_over = false;
  std::array<std::atomic<int>, kWorkers> served{};
  const auto work = [&](uint32_t worker) {
    const std::vector<Token> prompt = Prompt(48, worker + 1);
    while (!is_over) {
      const absl::Status end = Serve(*client, prompt);
      EXPECT_TRUE(end.ok() || absl::IsUnavailable(end) ||
                  ReasonOf(end) == reason::kSessionLost)
          << end;
      served[worker] += end.ok();
    }
  };
  const auto go_on = [&] {
    for (std::atomic<int>& calls : served) {
      EXPECT_TRUE(Eventually([&, before = calls.load()] {
        return calls > before && client->transport() == Transport::kLane;
      }));
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < kWorkers; ++i) workers.emplace_back(work, i);
  for (int round = 0; round < 3; ++round) {
    go_on();
    pandod_.reset();
    StartPandod();
  }
  go_on();
  is_over = true;
  for (std::thread& worker : workers) worker.join();
}

class BatchTest : public PandodTest,
                  public testing::WithParamInterface<bool> {};

TEST_P(BatchTest, CallsAreMadeInOrderWithAnAnswerEach) {
  const auto client = Connect({.lane = GetParam()});
  const std::vector<Token> prompt = Prompt(32);
  Batch batch = client->NewBatch();
  Answer<ReservedPages> pages = batch.AllocatePages(2);
  Answer<Done> bad =
      batch.FreePages({.session_id = client->session_id(), .ids = {0}});
  Answer<Match> match =
      batch.MatchPrefix(prompt, {.lock = true, .reserve_tokens = 32});
  EXPECT_TRUE(absl::IsFailedPrecondition(match.Take().status()));
  batch.Send();
  EXPECT_EQ(ReasonOf(bad.Take().status()), "PAGE_OUT_OF_RANGE");
  absl::StatusOr<ReservedPages> reserved = pages.Take();
  ASSERT_TRUE(reserved.ok()) << reserved.status();
  absl::StatusOr<Match> admitted = match.Take();
  ASSERT_TRUE(admitted.ok()) << admitted.status();

  Answer<InsertResult> inserted = batch.Insert(
      prompt, admitted->reserved.ids,
      {.lock = &admitted->lock, .lock_action = LockAction::kUnlock});
  Answer<Done> freed = batch.FreePages(*reserved);
  Answer<Lock> locked = batch.TakeLock(prompt);
  batch.Send();
  EXPECT_TRUE(inserted.Take().ok());
  EXPECT_FALSE(admitted->lock.held());
  EXPECT_TRUE(freed.Take().ok());
  absl::StatusOr<Lock> lock = locked.Take();
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_EQ(lock->tokens(), 32u);

  Answer<Done> unlocked = batch.Unlock(std::span(&*lock, 1));
  batch.Send();
  EXPECT_TRUE(unlocked.Take().ok());
  const Stats stats = *client->GetStats();
  EXPECT_EQ(stats.locks, 0u);
  EXPECT_EQ(stats.pages.reserved, 0u);
  EXPECT_EQ(stats.pages.evictable, 2u);
}

TEST_P(BatchTest, AHandleThatIsGoneCostsACallNothing) {
  const auto client = Connect({.lane = GetParam()});
  Publish(*client, Prompt(32));
  const PrefixHandle handle = client->MatchPrefix(Prompt(32))->handle;
  ASSERT_TRUE(client->Evict(2).ok());
  Batch batch = client->NewBatch();
  const std::vector<Token> prompt = Prompt(48);
  Answer<Match> match = batch.MatchPrefix(prompt, {.after = handle});
  batch.Send();
  EXPECT_EQ(match.Take()->matched_tokens, 0u);
}

TEST_P(BatchTest, MayBeLargerThanALane) {
  const auto client = Connect({.lane = GetParam()});
  const std::vector<Token> prompt = Prompt(16);
  Batch batch = client->NewBatch();
  std::vector<Answer<Match>> answers;
  for (int i = 0; i < 600; ++i) answers.push_back(batch.MatchPrefix(prompt));
  batch.Send();
  for (Answer<Match>& answer : answers) EXPECT_TRUE(answer.Take().ok());
}

INSTANTIATE_TEST_SUITE_P(Lane, BatchTest, testing::Bool());

class ClientWithSmallLaneTest : public PandodTest {
  std::vector<std::string> MoreFlags() const override {
    return {"--lane-bytes", "4096"};
  }
};

TEST_F(ClientWithSmallLaneTest, ACallThatDoesNotFitIsNotOvertaken) {
  constexpr uint32_t kTokens = (kPoolPages - 1) * kPageTokens;
  const auto client = Connect();
  ASSERT_EQ(client->transport(), Transport::kLane);
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    const std::vector<Token> prompt = Prompt(kTokens, seed);
    absl::StatusOr<Match> admitted =
        client->MatchPrefix(prompt, {.lock = true, .reserve_tokens = kTokens});
    ASSERT_TRUE(admitted.ok()) << admitted.status();
    Batch batch = client->NewBatch();
    Answer<InsertResult> inserted = batch.Insert(
        prompt, admitted->reserved.ids,
        {.lock = &admitted->lock, .lock_action = LockAction::kUnlock});
    const std::vector<Token> page = Prompt(kPageTokens, seed);
    Answer<Match> match = batch.MatchPrefix(page);
    batch.Send();
    EXPECT_TRUE(inserted.Take().ok());
    EXPECT_EQ(match.Take()->matched_tokens, kPageTokens) << seed;
  }
}

class ClientWithoutLaneTest : public PandodTest {
  std::vector<std::string> MoreFlags() const override {
    return {"--lane-bytes", "0"};
  }
};

TEST_F(ClientWithoutLaneTest, IsServedOverGrpc) {
  const auto client = Connect();
  EXPECT_EQ(client->transport(), Transport::kGrpc);
  EXPECT_THAT(std::string(client->why_no_lane().message()),
              HasSubstr("lane-bytes is 0"));
  Publish(*client, Prompt(32));
}

}  // namespace
}  // namespace pando
