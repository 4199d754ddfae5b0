// Tests prefix handles, the scoring of several prompts at once, waits for
// pending pages, and calls that are repeated, against a real pandod.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "tests/clients/pandod_fixture.h"
#include "tests/clients/relay.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::SizeIs;

using ClientHandleTest = PandodTest;

uint32_t Units(const std::vector<Token>& prompt, const Namespace& ns) {
  return static_cast<uint32_t>(prompt.size()) - (ns.bigram ? 1 : 0);
}

// Serves a request with a prompt that ends at the end of a page.
InsertResult Serve(Client& client, const std::vector<Token>& prompt,
                   const PrefixHandle& after = {}, const Namespace& ns = {}) {
  absl::StatusOr<Match> match =
      client.MatchPrefix(prompt, {.ns = ns,
                                  .lock = true,
                                  .reserve_tokens = Units(prompt, ns),
                                  .after = after});
  EXPECT_TRUE(match.ok()) << match.status();
  if (!match.ok()) return {};
  const absl::StatusOr<InsertResult> done = client.Insert(
      std::span(prompt).subspan(match->matched_tokens), match->reserved.ids,
      {.lock = &match->lock, .lock_action = LockAction::kUnlock});
  EXPECT_TRUE(done.ok()) << done.status();
  return done.ok() ? *done : InsertResult();
}

TEST_F(ClientHandleTest, AMatchAfterAHandleNamesOnlyThePagesAfterIt) {
  const auto client = Connect();
  const PrefixHandle handle = Serve(*client, Prompt(48)).handle;
  EXPECT_EQ(handle.tokens, 48u);
  Serve(*client, Prompt(80));
  const Match whole = *client->MatchPrefix(Prompt(80));
  const Match match = *client->MatchPrefix(Prompt(80), {.after = handle});
  EXPECT_EQ(match.matched_tokens, 80u);
  EXPECT_EQ(match.first_page, 3u);
  EXPECT_THAT(match.page_ids,
              ElementsAreArray(std::span(whole.page_ids).subspan(3)));
  EXPECT_EQ(match.handle, whole.handle);
}

TEST_F(ClientHandleTest, AConversationIsServedTurnByTurn) {
  const auto client = Connect();
  PrefixHandle handle;
  // Each turn adds kTurn tokens to the conversation, and begins at the handle
  // of the turn before.
  constexpr uint32_t kTurn = 256;
  for (uint32_t tokens = kTurn; tokens <= 3 * kTurn; tokens += kTurn) {
    const Match match = *client->MatchPrefix(Prompt(tokens), {.after = handle});
    EXPECT_EQ(match.matched_tokens, tokens - kTurn);
    handle = Serve(*client, Prompt(tokens), handle).handle;
    EXPECT_EQ(handle.tokens, tokens);
  }
}

TEST_F(ClientHandleTest, AHandleThatIsGoneGivesTheMatchOfTheWholePrompt) {
  const auto client = Connect();
  const PrefixHandle handle = Serve(*client, Prompt(48)).handle;
  ASSERT_EQ(*client->Evict(2), 2u);
  const Match match = *client->MatchPrefix(
      Prompt(64), {.lock = true, .reserve_tokens = 64, .after = handle});
  EXPECT_EQ(match.matched_tokens, 16u);
  EXPECT_EQ(match.first_page, 0u);
  EXPECT_THAT(match.page_ids, SizeIs(1));
  EXPECT_THAT(match.reserved.ids, SizeIs(3));
}

TEST_F(ClientHandleTest, AHandleOfAnotherBootGivesTheMatchOfTheWholePrompt) {
  const auto client = Connect();
  PrefixHandle handle = Serve(*client, Prompt(32)).handle;
  handle.epoch ^= 1;
  const Match match = *client->MatchPrefix(Prompt(32), {.after = handle});
  EXPECT_EQ(match.matched_tokens, 32u);
  EXPECT_THAT(match.page_ids, SizeIs(2));
}

TEST_F(ClientHandleTest, AHandleOfMoreTokensThanThePromptIsRefused) {
  const auto client = Connect();
  const PrefixHandle handle = Serve(*client, Prompt(32)).handle;
  const auto refused = [](const absl::Status& status) {
    return absl::IsInvalidArgument(status);
  };
  EXPECT_TRUE(
      refused(client->MatchPrefix(Prompt(16), {.after = handle}).status()));
  EXPECT_TRUE(
      refused(client->TakeLock(Prompt(16), {.after = handle}).status()));
  const std::vector<Token> prompt = Prompt(16);
  const PrefixQuery query = {.tokens = prompt, .after = handle};
  EXPECT_TRUE(refused(client->MatchPrefixes({&query, 1}).status()));
}

TEST_F(ClientHandleTest, ALockHasAHandleThatMovesWithIt) {
  const auto client = Connect();
  Match match =
      *client->MatchPrefix(Prompt(32), {.lock = true, .reserve_tokens = 32});
  EXPECT_EQ(match.lock.handle(), PrefixHandle());
  const auto done = client->Insert({}, std::span(match.reserved.ids).first(1),
                                   {.lock = &match.lock,
                                    .lock_action = LockAction::kRelock,
                                    .prompt_tokens = 16});
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(match.lock.handle(), done->handle);
  const Lock lock = *client->TakeLock(Prompt(32), {.after = done->handle});
  EXPECT_EQ(lock.tokens(), 16u);
}

TEST_F(ClientHandleTest, AnInsertAfterAHandleTakesTheWholeBlockTable) {
  const auto client = Connect();
  const PrefixHandle handle = Serve(*client, Prompt(32)).handle;
  std::vector<PageId> pages = client->MatchPrefix(Prompt(32))->page_ids;
  const ReservedPages own = *client->AllocatePages(1);
  pages.insert(pages.end(), own.ids.begin(), own.ids.end());
  const auto done = client->Insert(
      Prompt(48), pages, {.session_id = own.session_id, .after = handle});
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->existing_tokens, 32u);
  EXPECT_EQ(done->first_page, 2u);
  EXPECT_THAT(client->MatchPrefix(Prompt(48))->page_ids,
              ElementsAreArray(pages));
}

TEST_F(ClientHandleTest, QueriesWhoseHandleIsGoneAreScoredWhole) {
  const auto client = Connect();
  const PrefixHandle gone = Serve(*client, Prompt(32)).handle;
  ASSERT_TRUE(client->Flush().ok());
  Serve(*client, Prompt(16));
  const PrefixHandle there = Serve(*client, Prompt(16, 2)).handle;
  const std::vector<Token> first = Prompt(48), second = Prompt(32, 2);
  const std::vector<PrefixQuery> queries = {{.tokens = first, .after = gone},
                                            {.tokens = second, .after = there},
                                            {.tokens = first, .max_tokens = 0}};
  const auto scores = client->MatchPrefixes(queries);
  ASSERT_TRUE(scores.ok()) << scores.status();
  EXPECT_THAT(*scores,
              ElementsAre(PrefixScore{.matched_tokens = 16},
                          PrefixScore{.matched_tokens = 16}, PrefixScore{}));
  EXPECT_THAT(*client->MatchPrefixes({}), IsEmpty());
}

TEST_F(ClientHandleTest, AHandledMatchAlwaysEqualsTheMatchOfTheWholePrompt) {
  const auto client = Connect();
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t limit) {
    return std::uniform_int_distribution<uint32_t>(0, limit - 1)(random);
  };
  const Namespace ns = {.bigram = true};
  std::vector<std::pair<PrefixHandle, std::vector<Token>>> handles;
  for (int round = 0; round < 400; ++round) {
    // These prompts share prefixes of different lengths.
    std::vector<Token> prompt(1 + below(8) * kPageTokens);
    for (size_t i = below(8) * kPageTokens + below(16); i < prompt.size();
         ++i) {
      prompt[i] = 1;
    }
    if (below(3) == 0) {
      handles.emplace_back(Serve(*client, prompt, {}, ns).handle, prompt);
    } else if (below(4) == 0) {
      ASSERT_TRUE(client->Evict(below(6)).ok());
    } else if (!handles.empty()) {
      const auto& [handle, known] = handles[below(handles.size())];
      // The turn has the handle's prompt, and then something else.
      std::vector<Token> turn(known.begin(), known.begin() + handle.tokens + 1);
      turn.insert(turn.end(), prompt.begin(), prompt.end());
      const Match whole = *client->MatchPrefix(turn, {.ns = ns});
      const Match match =
          *client->MatchPrefix(turn, {.ns = ns, .after = handle});
      ASSERT_EQ(match.matched_tokens, whole.matched_tokens);
      ASSERT_THAT(match.page_ids,
                  ElementsAreArray(
                      std::span(whole.page_ids).subspan(match.first_page)));
    }
  }
  EXPECT_TRUE(client->CheckInvariants()->empty());
}

TEST_F(ClientHandleTest, AWaitEndsWhenThePageIsPublished) {
  const auto owner = Connect(), other = Connect();
  Match first =
      *owner->MatchPrefix(Prompt(32), {.lock = true, .reserve_tokens = 32});
  auto waiting = std::async(std::launch::async, [&] {
    return other->MatchPrefix(
        Prompt(32),
        {.lock = true, .reserve_tokens = 32, .pending_wait = absl::Minutes(1)});
  });
  ASSERT_TRUE(
      Eventually([&] { return owner->GetStats()->waiting_matches == 1; }));
  ASSERT_TRUE(owner
                  ->Insert({}, first.reserved.ids,
                           {.lock = &first.lock,
                            .lock_action = LockAction::kUnlock,
                            .prompt_tokens = 32})
                  .ok());
  const absl::StatusOr<Match> match = waiting.get();
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->pending, PendingOutcome::kPublished);
  EXPECT_EQ(match->matched_tokens, 32u);
}

TEST_F(ClientHandleTest, AWaitMayBeLongerThanTheTimeoutOfACall) {
  const auto owner = Connect();
  const Match first =
      *owner->MatchPrefix(Prompt(32), {.lock = true, .reserve_tokens = 32});
  const auto other = *Client::Connect(
      {.address = socket_path(), .timeout = absl::Milliseconds(200)});
  const absl::StatusOr<Match> match = other->MatchPrefix(
      Prompt(32), {.lock = true, .pending_wait = absl::Milliseconds(500)});
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_EQ(match->pending, PendingOutcome::kTimedOut);
  EXPECT_EQ(other->MatchPrefix(Prompt(32), {.lock = true})->pending,
            PendingOutcome::kNotAwaited);
}

class BreakingConnectionTest : public ClientHandleTest,
                               public testing::WithParamInterface<bool> {};

// The test runs with a lane, which ends with each connection, and without one.
TEST_P(BreakingConnectionTest, CallsActOnce) {
  const std::string path = folder_ / "relay.sock";
  Relay relay(path, socket_path());
  const auto watcher = Connect();
  const auto client = Connect({.address = path, .lane = GetParam()});
  std::atomic<bool> done = false;
  std::atomic<uint32_t> served = 0;
  std::thread cutting([&] {
    while (!done) {
      const uint32_t before = served;
      relay.Cut();
      // There is time for a call between two cuts, however slow the machine is.
      do {
        absl::SleepFor(absl::Milliseconds(50));
      } while (!done && served == before);
    }
  });
  while (relay.accepted() < 10) {
    Serve(*client, Prompt(16, served + 1));
    ++served;
  }
  done = true;
  cutting.join();
  const Stats stats = *watcher->GetStats();
  EXPECT_EQ(stats.counters.inserts, served);
  EXPECT_EQ(stats.locks, 0u);
  EXPECT_EQ(stats.pages.reserved, 0u);
}
INSTANTIATE_TEST_SUITE_P(Lane, BreakingConnectionTest, testing::Bool());

TEST_F(ClientHandleTest, OneNamespaceIsFlushedAndThePolicyChanged) {
  const auto client = Connect();
  const Namespace lora = {.extra_key = "lora"};
  Serve(*client, Prompt(32));
  Serve(*client, Prompt(32), {}, lora);
  EXPECT_EQ(client->Flush(lora)->evicted_pages, 2u);
  EXPECT_EQ(client->Flush(Namespace())->evicted_pages, 2u);
  EXPECT_EQ(*client->SetEvictionPolicy("slru"), "lru");
  EXPECT_EQ(client->GetStats()->eviction_policy, "slru");
  EXPECT_TRUE(
      absl::IsInvalidArgument(client->SetEvictionPolicy("best").status()));
}

}  // namespace
}  // namespace pando
