// Tests what becomes of a session when the connection or pandod breaks.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/clients/pandod_fixture.h"
#include "tests/clients/relay.h"

namespace pando {
namespace {

using ClientSessionTest = PandodTest;

TEST_F(ClientSessionTest, TheDestructorEndsTheSessionAtOnce) {
  const auto watcher = Connect();
  auto client = Connect();
  Lock lock = *client->TakeLock(Prompt(16));
  ASSERT_TRUE(client->AllocatePages(2).ok());
  client.reset();
  const Stats stats = *watcher->GetStats();
  EXPECT_EQ(stats.sessions, 1u);
  EXPECT_EQ(stats.counters.sessions_closed, 1u);
  EXPECT_EQ(stats.locks, 0u);
}

TEST_F(ClientSessionTest, ABrokenConnectionResumesTheSession) {
  const std::string path = folder_ / "relay.sock";
  Relay relay(path, socket_path());
  absl::Notification lost;
  const auto client = Connect(
      {.address = "unix:" + path, .on_session_lost = [&] { lost.Notify(); }});
  const uint64_t session = client->session_id();
  Lock lock = *client->TakeLock(Prompt(16));

  relay.Cut();
  ASSERT_TRUE(Eventually([&] { return relay.accepted() == 2; }));
  ASSERT_TRUE(Eventually([&] { return client->DescribePool().ok(); }));
  // The test waits for longer than the grace, after which a session that was
  // not resumed would be lost.
  EXPECT_FALSE(lost.WaitForNotificationWithTimeout(absl::Seconds(3)));
  EXPECT_EQ(client->session_id(), session);
  EXPECT_TRUE(lock.Release().ok());
}

// A client that calls over gRPC through a relay. A test can make the relay drop
// the answers of pandod, until the test breaks the connection.
class ClientSettlesTest : public PandodTest {
 protected:
  void SetUp() override {
    PandodTest::SetUp();
    const std::string path = folder_ / "relay.sock";
    relay_.emplace(path, socket_path());
    auto client = Client::Connect({.address = "unix:" + path,
                                   .name = "cut off",
                                   .timeout = absl::Seconds(2),
                                   .lane = false});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    observer_ = Connect();
  }
  void TearDown() override {
    client_.reset();
    observer_.reset();
    relay_.reset();
    PandodTest::TearDown();
  }

  Stats Held() { return observer_->GetStats().value(); }
  // Expects that pandod holds what `call` brought, although its answer was
  // lost, and that the client gives all of it back after the connection breaks.
  void ExpectGivenBack(const std::function<bool(const Stats&)>& brought,
                       const std::function<absl::Status()>& call) {
    relay_->Mute();
    EXPECT_TRUE(absl::IsDeadlineExceeded(call()));
    EXPECT_TRUE(brought(Held()));
    relay_->Cut();
    EXPECT_TRUE(Eventually([&] {
      const Stats stats = Held();
      return stats.locks == 0 && stats.pages.reserved == 0;
    }));
    EXPECT_EQ(Held().sessions, 2u) << "it was not the end of the session";
  }

  std::optional<Relay> relay_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Client> observer_;
};

TEST_F(ClientSettlesTest, AnAdmissionWithoutAnAnswerIsGivenBack) {
  ExpectGivenBack([](const Stats& held) { return held.locks == 1; },
                  [this] {
                    return client_
                        ->MatchPrefix(Prompt(32),
                                      {.lock = true, .reserve_tokens = 32})
                        .status();
                  });
}

TEST_F(ClientSettlesTest, ALockWithoutAnAnswerIsGivenBack) {
  ExpectGivenBack([](const Stats& held) { return held.locks == 1; },
                  [this] { return client_->TakeLock(Prompt(32)).status(); });
}

TEST_F(ClientSettlesTest, PagesWithoutAnAnswerAreGivenBack) {
  ExpectGivenBack([](const Stats& held) { return held.pages.reserved == 3; },
                  [this] { return client_->AllocatePages(3).status(); });
}

// pandod has moved the lock, but the client does not know that. If the client
// inserted the second page after the lock's old end, the page would be cached
// as the first page of another prompt.
TEST_F(ClientSettlesTest, NothingIsInsertedAfterALockWhoseEndIsNotKnown) {
  const std::vector<Token> prompt = Prompt(32);
  Match match =
      client_->MatchPrefix(prompt, {.lock = true, .reserve_tokens = 32})
          .value();
  const std::span<const PageId> pages = match.reserved.ids;
  const auto insert = [&](size_t page) {
    return client_
        ->Insert(std::span(prompt).subspan(page * 16, 16),
                 pages.subspan(page, 1),
                 {.lock = &match.lock, .lock_action = LockAction::kRelock})
        .status();
  };
  relay_->Mute();
  EXPECT_TRUE(absl::IsDeadlineExceeded(insert(0)));
  relay_->Cut();
  EXPECT_EQ(observer_->MatchPrefix(prompt)->matched_tokens, 16u);

  Lock lock = std::move(match.lock);
  EXPECT_TRUE(lock.held());
  EXPECT_TRUE(lock.is_in_doubt());
  match.lock = std::move(lock);
  EXPECT_EQ(ReasonOf(insert(1)), reason::kLockInDoubt);
  EXPECT_TRUE(Eventually([&] {
    return client_
        ->Insert({}, {},
                 {.lock = &match.lock,
                  .lock_action = LockAction::kUnlock,
                  .free_page_ids = pages.subspan(1)})
        .ok();
  }));
  EXPECT_EQ(Held().locks, 0u);
  EXPECT_EQ(Held().pages.reserved, 0u);
}

TEST_F(ClientSessionTest, CallsFailAtOnceWhileTheServerIsAway) {
  const auto client = Connect();
  Lock lock = *client->TakeLock(Prompt(16));
  pandod_->Kill();
  EXPECT_TRUE(absl::IsUnavailable(client->MatchPrefix(Prompt(16)).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->AllocatePages(1).status()));
  EXPECT_TRUE(absl::IsUnavailable(client->GetStats().status()));
  EXPECT_TRUE(absl::IsUnavailable(lock.Release()));
  EXPECT_TRUE(lock.held());
}

TEST_F(ClientSessionTest, ARestartOpensANewSessionAndVoidsOldHandles) {
  absl::Notification lost;
  const auto client = Connect({.on_session_lost = [&] { lost.Notify(); }});
  const uint64_t epoch = client->epoch();
  const uint64_t session = client->session_id();
  Lock lock = *client->TakeLock(Prompt(16));
  Lock released_later = *client->TakeLock(Prompt(16));
  const ReservedPages pages = *client->AllocatePages(1);

  pandod_->Kill();
  StartPandod();
  lost.WaitForNotification();
  ASSERT_TRUE(Eventually([&] { return client->session_id() != 0; }));
  EXPECT_NE(client->session_id(), session);
  EXPECT_NE(client->epoch(), epoch);

  EXPECT_THAT(client->FreePages(pages), FailsWith(reason::kSessionLost));
  EXPECT_THAT(
      client->Insert(Prompt(16), pages.ids, {.session_id = pages.session_id})
          .status(),
      FailsWith(reason::kSessionLost));
  EXPECT_THAT(client->Insert(Prompt(16), {}, {.lock = &lock}).status(),
              FailsWith(reason::kSessionLost));
  EXPECT_FALSE(lock.held());
  EXPECT_TRUE(lock.Release().ok());
  EXPECT_THAT(released_later.Release(), FailsWith(reason::kSessionLost));
  EXPECT_FALSE(released_later.held());

  const auto match =
      client->MatchPrefix(Prompt(16), {.lock = true, .reserve_tokens = 16});
  EXPECT_TRUE(match.ok()) << match.status();
}

TEST_F(ClientSessionTest, AnOldHandleIsRefusedByTheNewServerItself) {
  // The client may make a call before it notices the restart. The new pandod
  // must not take the old session for one of its own.
  const auto client = Connect();
  const ReservedPages pages = *client->AllocatePages(1);
  pandod_->Kill();
  StartPandod();
  absl::Status status;
  ASSERT_TRUE(Eventually([&] {
    status = client->FreePages(pages);
    return !absl::IsUnavailable(status);
  }));
  EXPECT_THAT(status, FailsWith(reason::kSessionLost));
}

TEST_F(ClientSessionTest, ThreadsShareOneClient) {
  const auto client = Connect();
  std::vector<std::thread> threads;
  for (uint32_t seed = 1; seed <= 4; ++seed) {
    threads.emplace_back([&client, seed] {
      const std::vector<Token> prompt = Prompt(64, seed);
      for (int round = 0; round < 50; ++round) {
        auto match =
            client->MatchPrefix(prompt, {.lock = true, .reserve_tokens = 64});
        ASSERT_TRUE(match.ok()) << match.status();
        const auto suffix = std::span(prompt).subspan(match->matched_tokens);
        const auto result = client->Insert(
            suffix, match->reserved.ids,
            {.lock = &match->lock, .lock_action = LockAction::kUnlock});
        ASSERT_TRUE(result.ok()) << result.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Stats stats = *client->GetStats();
  EXPECT_EQ(stats.pages.evictable, 16u);
  EXPECT_EQ(stats.locks, 0u);
  EXPECT_TRUE(client->CheckInvariants()->empty());
}

}  // namespace
}  // namespace pando
