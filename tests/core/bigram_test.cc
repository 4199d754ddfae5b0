// Tests of namespaces that compare pairs of neighbouring tokens.

#include <cstdint>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const NamespaceKey kBigram{std::nullopt, std::nullopt, true};

std::vector<Token> Count(Token first, size_t tokens) {
  std::vector<Token> counted;
  for (size_t i = 0; i < tokens; ++i) {
    counted.push_back(first + static_cast<Token>(i));
  }
  return counted;
}

// A test with pages of 4 pairs. Most prompts are the tokens 0, 1, 2 and so on.
class BigramTest : public CacheFixture {
 protected:
  std::vector<PageId> PublishTokens(const std::vector<Token>& tokens,
                                    const PrefixHandle& after = {}) {
    const auto pages =
        Allocate(static_cast<uint32_t>((tokens.size() - 1) / kPageTokens));
    EXPECT_EQ(Outcome(cache_.Insert({.session = session_,
                                     .ns = kBigram,
                                     .tokens = tokens,
                                     .pages = pages,
                                     .after = after})),
              "OK");
    return pages;
  }
  MatchResult Match(const std::vector<Token>& tokens,
                    const PrefixHandle& after = {}) {
    return *cache_.Match({.ns = kBigram, .tokens = tokens, .after = after});
  }
};

TEST_F(BigramTest, EqualTokensAreOnePairFewerFlooredToPages) {
  PublishTokens(Count(0, 13));
  for (uint32_t tokens = 0; tokens <= 13; ++tokens) {
    const uint32_t pairs = tokens == 0 ? 0 : tokens - 1;
    EXPECT_EQ(Match(Count(0, tokens)).matched_tokens,
              pairs / kPageTokens * kPageTokens)
        << tokens << " equal tokens";
  }
}

TEST_F(BigramTest, TheLastPairOfAPageIsCompared) {
  PublishTokens(Count(0, 9));
  std::vector<Token> prompt = Count(0, 9);
  prompt[4] = 99;  // in the last pair of the first page
  EXPECT_EQ(Match(prompt).matched_tokens, 0u);
  prompt = Count(0, 9);
  prompt[8] = 99;
  EXPECT_EQ(Match(prompt).matched_tokens, kPageTokens);
}

TEST_F(BigramTest, AnInsertNeedsAPageForEachWholePageOfPairs) {
  const auto pages = Allocate(2);
  const auto tokens = Count(0, 8);  // seven pairs, one too few
  const auto insert = cache_.Insert(
      {.session = session_, .ns = kBigram, .tokens = tokens, .pages = pages});
  EXPECT_EQ(Outcome(insert), "INVALID_ALIGNMENT");
}

TEST_F(BigramTest, SharesNothingWithTheSameTokensAsUnits) {
  Publish("ab");
  auto tokens = Spell("ab");
  tokens.push_back(0);
  EXPECT_EQ(Match(tokens).matched_tokens, 0u);
}

TEST_F(BigramTest, ADeltaAfterAHandleRepeatsTheLastTokenBeforeIt) {
  const auto pages = PublishTokens(Count(0, 13));
  const PrefixHandle handle = Match(Count(0, 5)).handle;
  EXPECT_EQ(handle.tokens, 4u);
  const MatchResult match = Match(Count(4, 9), handle);
  EXPECT_EQ(match.matched_tokens, 12u);
  EXPECT_THAT(match.pages, ElementsAre(pages[1], pages[2]));
}

TEST_F(BigramTest, AnInsertRepeatsTheLastTokenBeforeIt) {
  PublishTokens(Count(0, 9));
  const MatchResult match = Match(Count(0, 9));
  const auto lock =
      cache_.Lock({.session = session_, .ns = kBigram, .tokens = Count(0, 9)});
  const auto pages = Allocate(1);
  const auto insert = [&](Token first, LockId anchor, PrefixHandle after) {
    std::vector<Token> tokens = Count(8, 5);
    tokens[0] = first;
    return Outcome(cache_.Insert({.session = session_,
                                  .ns = kBigram,
                                  .tokens = tokens,
                                  .pages = pages,
                                  .anchor = anchor,
                                  .after = after}));
  };
  const auto before = Snapshot();
  EXPECT_EQ(insert(7, lock->lock, {}), "INVALID_FIELD");
  EXPECT_EQ(insert(7, LockId(), match.handle), "INVALID_FIELD");
  EXPECT_EQ(Snapshot(), before);
  EXPECT_EQ(insert(8, lock->lock, {}), "OK");
  EXPECT_EQ(Match(Count(0, 13)).matched_tokens, 12u);
}

TEST_F(BigramTest, AnInsertInsideANodeRepeatsTheTokenBeforeIt) {
  PublishTokens(Count(0, 13));
  const PrefixHandle handle = Match(Count(0, 5)).handle;  // one page of three
  const auto pages = Allocate(1);
  const auto insert = [&](const std::vector<Token>& tokens) {
    return Outcome(cache_.Insert({.session = session_,
                                  .ns = kBigram,
                                  .tokens = tokens,
                                  .pages = pages,
                                  .after = handle}));
  };
  EXPECT_EQ(insert({5, 90, 91, 92, 93}), "INVALID_FIELD");
  EXPECT_EQ(insert({4, 90, 91, 92, 93}), "OK");
}

TEST_F(BigramTest, AnEmptyDeltaMatchesWhatTheHandleNames) {
  PublishTokens(Count(0, 13));
  const PrefixHandle handle = Match(Count(0, 9)).handle;
  EXPECT_EQ(Match({}, handle).matched_tokens, 8u);
  EXPECT_EQ(Match({8}, handle).matched_tokens, 8u);
  EXPECT_EQ(cache_.Score({.ns = kBigram, .tokens = {}, .after = handle})
                ->matched_tokens,
            8u);
  const auto lock = cache_.Lock(
      {.session = session_, .ns = kBigram, .tokens = {}, .after = handle});
  EXPECT_EQ(lock->locked_tokens, 8u);
}

TEST_F(BigramTest, AnInsertAfterAHandleIsFoundByTheWholePrompt) {
  PublishTokens(Count(0, 5));
  PublishTokens(Count(4, 9), Match(Count(0, 5)).handle);
  EXPECT_EQ(Match(Count(0, 13)).matched_tokens, 12u);
}

TEST_F(BigramTest, ASplitKeepsThePairsOnBothSides) {
  PublishTokens(Count(0, 13));
  std::vector<Token> fork = Count(0, 13);
  fork[5] = 99;
  PublishTokens(fork);  // shares the first page
  EXPECT_EQ(Nodes(), 3u);
  EXPECT_EQ(Match(Count(0, 13)).matched_tokens, 12u);
  EXPECT_EQ(Match(fork).matched_tokens, 12u);
}

TEST_F(BigramTest, MaxTokensCapsTheTokensOfThePairs) {
  PublishTokens(Count(0, 13));
  const auto tokens = Count(0, 13);
  const auto capped = [&](uint32_t max_tokens) {
    return cache_
        .Match({.ns = kBigram, .tokens = tokens, .max_tokens = max_tokens})
        ->matched_tokens;
  };
  EXPECT_EQ(capped(13), 12u);
  EXPECT_EQ(capped(12), 8u);
  EXPECT_EQ(capped(5), 4u);
  EXPECT_EQ(capped(4), 0u);
  EXPECT_EQ(capped(0), 0u);
}

TEST_F(BigramTest, AChunkedPrefillOfAHeldPromptPublishesEveryPair) {
  const auto prompt = Count(0, 13);
  const auto match = cache_.Match({.session = session_,
                                   .ns = kBigram,
                                   .tokens = prompt,
                                   .lock = true,
                                   .reserve_tokens = 13});
  ASSERT_EQ(Outcome(match), "OK");
  ASSERT_EQ(match->reserved.size(), 4u);
  const auto chunk = [&](uint32_t page, uint32_t tokens, LockAction action) {
    return cache_.Insert({.session = session_,
                          .ns = kNoNamespace,
                          .tokens = {},
                          .pages = std::span(match->reserved).subspan(page, 1),
                          .anchor = match->lock,
                          .lock_action = action,
                          .prompt_tokens = tokens});
  };
  EXPECT_EQ(Outcome(chunk(0, 5, LockAction::kRelock)), "OK");
  EXPECT_EQ(Outcome(chunk(1, 5, LockAction::kRelock)), "OK");
  EXPECT_EQ(Outcome(chunk(2, 5, LockAction::kUnlock)), "OK");
  EXPECT_EQ(Match(prompt).matched_tokens, 12u);
}

// The last inserted pair ends with a token that the insert sends. That token
// may differ from the held prompt's token at this place, so the rest of the
// held prompt is dropped.
TEST_F(BigramTest, AHeldPromptIsDroppedByARelockIntoASentPair) {
  const auto prompt = Count(0, 13);
  const auto match = cache_.Match({.session = session_,
                                   .ns = kBigram,
                                   .tokens = prompt,
                                   .lock = true,
                                   .reserve_tokens = 13});
  ASSERT_EQ(Outcome(match), "OK");
  const auto insert = [&](uint32_t page, uint32_t prompt_tokens,
                          const std::vector<Token>& sent) {
    return cache_.Insert({.session = session_,
                          .ns = kBigram,
                          .tokens = sent,
                          .pages = std::span(match->reserved).subspan(page, 1),
                          .anchor = match->lock,
                          .lock_action = LockAction::kRelock,
                          .prompt_tokens = prompt_tokens});
  };
  EXPECT_EQ(Outcome(insert(0, kPageTokens, {99})), "OK");
  EXPECT_EQ(Outcome(insert(1, kPageTokens + 1, {})), "INVALID_FIELD");
}

TEST_F(BigramTest, EvictionTrimsWholePagesOfPairs) {
  PublishTokens(Count(0, 13));
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Match(Count(0, 13)).matched_tokens, 8u);
  PublishTokens(Count(8, 5), Match(Count(0, 9)).handle);
  EXPECT_EQ(Match(Count(0, 13)).matched_tokens, 12u);
}

}  // namespace
}  // namespace pando
