// Tests that matches and scores tell what a tier has, and that a match loads
// from a tier, against a real pandod.
#include <gtest/gtest.h>

#include <vector>

#include "tests/clients/pandod_fixture.h"

namespace pando {
namespace {

using testing::ElementsAre;

constexpr uint32_t kTokens = 64;

class ClientTierTest : public PandodTest {
 protected:
  std::vector<std::string> MoreFlags() const override {
    return {"--tier-disk", folder_ / "tier", "--tier-disk-bytes=4MiB",
            "--tier-min-load-tokens=16"};
  }

  // Puts a prompt into the tier, and evicts it from the pool.
  void Store(Client& client, const std::vector<Token>& prompt) {
    ASSERT_TRUE(Eventually([&] {
      Compute(client, prompt);
      // The next attempt computes pages again that were evicted before they
      // were stored.
      return client.Evict(kPoolPages).ok() &&
             client.MatchPrefix(prompt, {.load = Load::kNo})->loadable_tokens ==
                 prompt.size();
    }));
  }

 private:
  static void Compute(Client& client, const std::vector<Token>& prompt) {
    absl::StatusOr<Match> match = client.MatchPrefix(
        prompt,
        {.lock = true, .reserve_tokens = static_cast<uint32_t>(prompt.size())});
    ASSERT_TRUE(match.ok()) << match.status();
    const absl::StatusOr<InsertResult> done = client.Insert(
        std::span(prompt).subspan(match->matched_tokens), match->reserved.ids,
        {.lock = &match->lock, .lock_action = LockAction::kUnlock});
    ASSERT_TRUE(done.ok()) << done.status();
  }
};

class ClientHostTierTest : public ClientTierTest {
 protected:
  std::vector<std::string> MoreFlags() const override {
    return {"--tier-host-bytes=4MiB", "--tier-min-load-tokens=16"};
  }
};

TEST_F(ClientTierTest, AMatchThatAsksIsToldWhatIsOnDisk) {
  const auto client = Connect();
  Store(*client, Prompt(kTokens));
  const Match told = *client->MatchPrefix(Prompt(kTokens), {.load = Load::kNo});
  EXPECT_EQ(told.matched_tokens, 0u);
  EXPECT_EQ(told.loadable_tokens, kTokens);
  EXPECT_EQ(told.loadable_tier, Tier::kDisk);
  const Match untold = *client->MatchPrefix(Prompt(kTokens));
  EXPECT_EQ(untold.loadable_tokens, 0u);
  EXPECT_EQ(untold.loadable_tier, Tier::kNone);
}

TEST_F(ClientTierTest, AMatchThatWaitsLoadsWhatIsOnDisk) {
  const auto client = Connect();
  // A load may be over before the call waits for it, so there are several
  // attempts.
  ASSERT_TRUE(Eventually([&] {
    Store(*client, Prompt(kTokens));
    const Match match = *client->MatchPrefix(
        Prompt(kTokens), {.lock = true, .pending_wait = absl::Minutes(1)});
    EXPECT_EQ(match.matched_tokens, kTokens);
    EXPECT_EQ(match.loadable_tokens, 0u);
    return match.pending == PendingOutcome::kLoaded;
  }));
}

TEST_F(ClientTierTest, ALoadCanBeStartedAndNotAwaited) {
  const auto client = Connect();
  Store(*client, Prompt(kTokens));
  const Match begun =
      *client->MatchPrefix(Prompt(kTokens), {.load = Load::kStart});
  EXPECT_EQ(begun.matched_tokens + begun.loadable_tokens, kTokens);
  EXPECT_TRUE(Eventually([&] {
    return client->MatchPrefix(Prompt(kTokens))->matched_tokens == kTokens;
  }));
}

TEST_F(ClientTierTest, ScoresThatAskAreToldWhatIsOnDisk) {
  const auto client = Connect();
  Store(*client, Prompt(kTokens));
  const std::vector<Token> on_disk = Prompt(kTokens);
  const std::vector<Token> nowhere = Prompt(kTokens, 2);
  const std::vector<PrefixQuery> queries = {{.tokens = on_disk},
                                            {.tokens = nowhere}};
  EXPECT_THAT(*client->MatchPrefixes(queries, {.tell_loadable = true}),
              ElementsAre(PrefixScore{.loadable_tokens = kTokens,
                                      .loadable_tier = Tier::kDisk},
                          PrefixScore{}));
  EXPECT_THAT(*client->MatchPrefixes(queries),
              ElementsAre(PrefixScore{}, PrefixScore{}));
}

TEST_F(ClientHostTierTest, AMatchThatAsksIsToldWhatIsInHostMemory) {
  const auto client = Connect();
  Store(*client, Prompt(kTokens));
  const Match told = *client->MatchPrefix(Prompt(kTokens), {.load = Load::kNo});
  EXPECT_EQ(told.loadable_tokens, kTokens);
  EXPECT_EQ(told.loadable_tier, Tier::kHost);
}

}  // namespace
}  // namespace pando
