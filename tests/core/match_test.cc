#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using MatchTest = CacheFixture;

TEST_F(MatchTest, NothingIsFoundInAnEmptyCache) {
  EXPECT_THAT(PagesOf("abc"), IsEmpty());
  EXPECT_EQ(cache_.Stats().namespaces, 0u);
}

TEST_F(MatchTest, AnEmptyPromptMatchesNothing) {
  Publish("abc");
  EXPECT_THAT(PagesOf(""), IsEmpty());
}

TEST_F(MatchTest, FindsTheWholePrompt) {
  const auto pages = Publish("abc");
  EXPECT_EQ(PagesOf("abc"), pages);
}

TEST_F(MatchTest, FindsTheLongestCachedPrefix) {
  const auto pages = Publish("abc");
  EXPECT_THAT(PagesOf("abdc"), ElementsAre(pages[0], pages[1]));
  EXPECT_EQ(PagesOf("abcdef"), pages);
  EXPECT_THAT(PagesOf("bc"), IsEmpty());
}

TEST_F(MatchTest, FollowsBranches) {
  const auto trunk = Publish("abcd");
  const auto branch = Allocate(2);
  ASSERT_EQ(Outcome(Insert("abef", {trunk[0], trunk[1], branch[0], branch[1]})),
            "OK");
  EXPECT_EQ(PagesOf("abcd"), trunk);
  EXPECT_THAT(PagesOf("abef"),
              ElementsAre(trunk[0], trunk[1], branch[0], branch[1]));
  EXPECT_EQ(CachedPages("abce"), 3u);
  EXPECT_EQ(CachedPages("abgh"), 2u);
}

TEST_F(MatchTest, CountsWholePagesOnly) {
  const auto pages = Publish("ab");
  // The prompt has only three of the second page's four tokens.
  auto tokens = Spell("ab");
  tokens.pop_back();
  const auto match =
      cache_.Match({.session = {}, .ns = kNoNamespace, .tokens = tokens});
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, kPageTokens);
  EXPECT_THAT(match->pages, ElementsAre(pages[0]));
}

TEST_F(MatchTest, MaxTokensCapsTheMatchAndIsFlooredToPages) {
  Publish("abc");
  const auto tokens = Spell("abc");
  const auto matched = [&](std::optional<uint32_t> max_tokens) {
    return cache_
        .Match({.session = {},
                .ns = kNoNamespace,
                .tokens = tokens,
                .max_tokens = max_tokens})
        ->matched_tokens;
  };
  EXPECT_EQ(matched(std::nullopt), 12u);
  EXPECT_EQ(matched(0), 0u);
  EXPECT_EQ(matched(3), 0u);
  EXPECT_EQ(matched(4), 4u);
  EXPECT_EQ(matched(11), 8u);
  EXPECT_EQ(matched(100), 12u);
}

TEST_F(MatchTest, FindsDifferencesAtEachPlaceOfALongPrompt) {
  constexpr uint32_t kLength = 2000;
  for (const uint32_t page_tokens : {1u, 4u, 64u}) {
    PrefixCache cache({page_tokens, kLength + 1});
    cache.OpenSession(session_, "long");
    std::vector<Token> prompt(kLength);
    for (Token i = 0; i < kLength; ++i) prompt[i] = i % 17;
    const auto pages = cache
                           .Allocate({.session = session_,
                                      .ns = kNoNamespace,
                                      .pages = kLength / page_tokens})
                           ->pages;
    ASSERT_EQ(Outcome(cache.Insert({.session = session_,
                                    .ns = kNoNamespace,
                                    .tokens = prompt,
                                    .pages = pages})),
              "OK");
    for (const uint32_t at :
         {0, 1, 2, 63, 64, 65, 127, 128, 511, 512, 513, 1234, 1999}) {
      auto other = prompt;
      other[at] = 99;
      const auto match =
          cache.Match({.session = {}, .ns = kNoNamespace, .tokens = other});
      const uint32_t whole = kLength / page_tokens * page_tokens;
      EXPECT_EQ(match->matched_tokens,
                std::min(at / page_tokens * page_tokens, whole))
          << "page_tokens " << page_tokens << ", at " << at;
    }
  }
}

TEST_F(MatchTest, WithoutALockChangesNoStructure) {
  Publish("abcd");
  const uint32_t nodes = Nodes();
  const auto pages = Counts();
  Touch("ab");
  Touch("abx");
  EXPECT_EQ(Nodes(), nodes);
  EXPECT_EQ(Counts().evictable, pages.evictable);
}

TEST_F(MatchTest, WithALockSplitsAtTheBoundarySoThatProtectedIsExact) {
  const auto pages = Publish("abcd");
  const auto match = MatchAndLock("abx");
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_THAT(match->pages, ElementsAre(pages[0], pages[1]));
  EXPECT_NE(match->lock, LockId());
  EXPECT_EQ(Counts().protected_, 2u);
  EXPECT_EQ(Counts().evictable, 2u);
  EXPECT_EQ(PagesOf("abcd"), pages);
}

TEST_F(MatchTest, WithALockReturnsOneEvenWhenNothingMatched) {
  const auto match = MatchAndLock("abc");
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, 0u);
  EXPECT_NE(match->lock, LockId());
  EXPECT_EQ(Counts().protected_, 0u);
  EXPECT_EQ(Outcome(Unlock(match->lock)), "OK");
}

TEST_F(MatchTest, ReservesThePagesThatDidNotMatch) {
  Publish("ab");
  const auto match = MatchAndLock("abcd", 4 * kPageTokens + 1);
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, 8u);
  EXPECT_EQ(match->reserved.size(), 3u);  // two whole pages and a partial one
  EXPECT_EQ(Counts().reserved, 3u);
}

TEST_F(MatchTest, ReservesNothingWhenTheMatchCoversIt) {
  Publish("abcd");
  const auto match = MatchAndLock("abcd", 2 * kPageTokens);
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_THAT(match->reserved, IsEmpty());
}

TEST_F(MatchTest, ReservingEvictsOthersButNotWhatItMatched) {
  Publish("abcde");
  Publish("fghij");
  Touch("fghij");  // makes the matched prompt the oldest one
  const auto match = MatchAndLock("abcde", kUsable * kPageTokens);
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, 5 * kPageTokens);
  EXPECT_EQ(match->reserved.size(), 10u);
  EXPECT_EQ(CachedPages("abcde"), 5u);
  EXPECT_EQ(CachedPages("fghij"), 0u);
}

TEST_F(MatchTest, FailsWholeWhenThePagesCannotBeReserved) {
  Publish("abcd");
  const auto before = Snapshot();
  const auto match = MatchAndLock("ab", (kUsable + 1) * kPageTokens);
  EXPECT_EQ(Outcome(match), "POOL_EXHAUSTED");
  EXPECT_EQ(Snapshot(), before);
  EXPECT_EQ(cache_.Stats().counters.allocation_failures, 1u);
}

// The matched pages count neither as room nor as missing pages.
TEST_F(MatchTest, ReservesTheLastPageThatCanBeHad) {
  Publish("abcd");
  EXPECT_EQ(Outcome(MatchAndLock("abx", kUsable * kPageTokens)), "OK");
  EXPECT_EQ(Counts().reserved, kUsable - 2);
  EXPECT_EQ(Counts().free + Counts().evictable, 0u);
}

TEST_F(MatchTest, CountsQueriesAndHitsUnlessItDoesNotTouch) {
  Publish("ab");
  Touch("abcd");
  PagesOf("abcd");
  const CacheCounters counters = cache_.Stats().counters;
  EXPECT_EQ(counters.matches, 2u);
  EXPECT_EQ(counters.query_tokens, 16u);
  EXPECT_EQ(counters.hit_tokens, 8u);
}

}  // namespace
}  // namespace pando
