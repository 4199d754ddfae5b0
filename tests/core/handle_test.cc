// Tests of a match, an insert or a lock that begins at a prefix handle.

#include <string_view>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HandleTest : public CacheFixture {
 protected:
  absl::StatusOr<MatchResult> MatchAfter(const PrefixHandle& after,
                                         std::string_view letters) {
    const auto tokens = Spell(letters);
    return cache_.Match({.session = session_,
                         .ns = kNoNamespace,
                         .tokens = tokens,
                         .after = after});
  }
  PrefixHandle HandleOf(std::string_view letters) {
    return MatchAfter({}, letters)->handle;
  }
};

TEST_F(HandleTest, AMatchThatFindsNothingGivesNone) {
  EXPECT_EQ(MatchAfter({}, "abc")->handle, PrefixHandle());
}

TEST_F(HandleTest, AHandledMatchNamesOnlyThePagesAfterIt) {
  const auto pages = Publish("abcde");
  const auto match = MatchAfter(HandleOf("ab"), "cdx");
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, 4 * kPageTokens);
  EXPECT_THAT(match->pages, ElementsAre(pages[2], pages[3]));
}

TEST_F(HandleTest, AnEmptyDeltaMatchesWhatTheHandleNames) {
  Publish("abc");
  const auto match = MatchAfter(HandleOf("ab"), "");
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, 2 * kPageTokens);
  EXPECT_THAT(match->pages, IsEmpty());
  EXPECT_EQ(match->handle, HandleOf("ab"));
}

TEST_F(HandleTest, StaysValidWhenItsNodeIsSplit) {
  Publish("abcdef");
  const PrefixHandle inside = HandleOf("abcd");
  const PrefixHandle end = HandleOf("abcdef");
  Lock("ab");
  Lock("abc");
  Publish("abx");
  EXPECT_EQ(MatchAfter(inside, "ef")->matched_tokens, 6 * kPageTokens);
  EXPECT_EQ(MatchAfter(end, "")->matched_tokens, 6 * kPageTokens);
}

TEST_F(HandleTest, IsGoneWhenItsPagesAreTrimmed) {
  Publish("abcd");
  const PrefixHandle front = HandleOf("ab");
  const PrefixHandle end = HandleOf("abcd");
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(Outcome(MatchAfter(end, "e")), "HANDLE_GONE");
  EXPECT_EQ(MatchAfter(front, "cd")->matched_tokens, 2 * kPageTokens);
}

TEST_F(HandleTest, IsGoneWhenItsNodeIsEvicted) {
  Publish("ab");
  const PrefixHandle handle = HandleOf("ab");
  cache_.Flush();
  EXPECT_EQ(Outcome(MatchAfter(handle, "c")), "HANDLE_GONE");
  Publish("ab");  // caches the same pages again, as a new node
  EXPECT_EQ(Outcome(MatchAfter(handle, "c")), "HANDLE_GONE");
}

// When a lock splits the node, the front part becomes a new node. The handle
// still names the old node, which keeps the end and is evicted.
TEST_F(HandleTest, IsGoneWithItsNodeThoughThePrefixBeforeThatIsCached) {
  Publish("abcd");
  const PrefixHandle front = HandleOf("ab");
  Lock("ab");
  EXPECT_EQ(cache_.Evict(kUsable), 2u);
  EXPECT_EQ(CachedPages("ab"), 2u);
  EXPECT_EQ(Outcome(MatchAfter(front, "c")), "HANDLE_GONE");
}

TEST_F(HandleTest, ShowsNothingOfAnotherNamespace) {
  const NamespaceKey other{"other", std::nullopt};
  Publish("ab");
  const auto tokens = Spell("c");
  const auto match =
      cache_.Match({.ns = other, .tokens = tokens, .after = HandleOf("ab")});
  EXPECT_EQ(Outcome(match), "HANDLE_GONE");
}

TEST_F(HandleTest, OneThatWasNeverGivenIsGone) {
  Publish("ab");
  PrefixHandle handle = HandleOf("ab");
  handle.tokens += kPageTokens;
  EXPECT_EQ(Outcome(MatchAfter(handle, "c")), "HANDLE_GONE");
  handle = HandleOf("ab");
  handle.node += 1'000'000;
  EXPECT_EQ(Outcome(MatchAfter(handle, "c")), "HANDLE_GONE");
}

TEST_F(HandleTest, OneThatEndsWithinAPageIsInvalid) {
  Publish("ab");
  PrefixHandle handle = HandleOf("ab");
  --handle.tokens;
  EXPECT_EQ(Outcome(MatchAfter(handle, "c")), "INVALID_FIELD");
}

TEST_F(HandleTest, MaxTokensCountsFromThePromptsStart) {
  const auto pages = Publish("abcd");
  const auto tokens = Spell("cd");
  const auto match = cache_.Match({.ns = kNoNamespace,
                                   .tokens = tokens,
                                   .max_tokens = 3 * kPageTokens,
                                   .after = HandleOf("ab")});
  EXPECT_EQ(match->matched_tokens, 3 * kPageTokens);
  EXPECT_THAT(match->pages, ElementsAre(pages[2]));
}

TEST_F(HandleTest, MaxTokensBeforeTheHandleEndsTheMatchThere) {
  Publish("abcd");
  const auto tokens = Spell("cd");
  const auto match = cache_.Match({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = tokens,
                                   .max_tokens = kPageTokens,
                                   .lock = true,
                                   .reserve_tokens = 3 * kPageTokens,
                                   .after = HandleOf("abc")});
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, kPageTokens);
  EXPECT_THAT(match->pages, IsEmpty());
  EXPECT_EQ(match->reserved.size(), 2u);
  // The match did not receive the tokens after the matched part, so the lock
  // holds none.
  const auto insert = cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = {},
                                     .pages = {},
                                     .anchor = match->lock,
                                     .prompt_tokens = 1});
  EXPECT_EQ(Outcome(insert), "INVALID_FIELD");
}

TEST_F(HandleTest, ReserveTokensCountsFromThePromptsStart) {
  Publish("abc");
  const auto tokens = Spell("cde");
  const auto match = cache_.Match({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = tokens,
                                   .lock = true,
                                   .reserve_tokens = 5 * kPageTokens,
                                   .after = HandleOf("ab")});
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->matched_tokens, 3 * kPageTokens);
  EXPECT_EQ(match->reserved.size(), 2u);
}

TEST_F(HandleTest, AnInsertAfterAHandleContinuesThatPrefix) {
  const auto front = Publish("ab");
  const auto pages = Allocate(2);
  const auto tokens = Spell("cd");
  const auto insert = cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = pages,
                                     .after = HandleOf("ab")});
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->existing_tokens, 0u);
  EXPECT_EQ(insert->handle, HandleOf("abcd"));
  EXPECT_EQ(PagesOf("abcd"), Concat(front, pages));
}

TEST_F(HandleTest, AnInsertAfterAHandleThatIsGoneTakesNothing) {
  Publish("ab");
  const PrefixHandle handle = HandleOf("ab");
  cache_.Flush();
  const auto pages = Allocate(1);
  const auto tokens = Spell("c");
  const auto before = Snapshot();
  const auto insert = cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = pages,
                                     .after = handle});
  EXPECT_EQ(Outcome(insert), "HANDLE_GONE");
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(HandleTest, AnInsertHasOneAnchor) {
  Publish("ab");
  const auto insert = cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = {},
                                     .pages = {},
                                     .anchor = Lock("ab"),
                                     .after = HandleOf("ab")});
  EXPECT_EQ(Outcome(insert), "INVALID_FIELD");
}

TEST_F(HandleTest, ALockAfterAHandleProtectsTheWholePrefix) {
  Publish("abcd");
  const auto tokens = Spell("c");
  const auto lock = cache_.Lock({.session = session_,
                                 .ns = kNoNamespace,
                                 .tokens = tokens,
                                 .after = HandleOf("ab")});
  ASSERT_EQ(Outcome(lock), "OK");
  EXPECT_EQ(lock->locked_tokens, 3 * kPageTokens);
  EXPECT_EQ(Counts().protected_, 3u);
}

TEST_F(HandleTest, AScoreAfterAHandleCountsFromThePromptsStart) {
  Publish("abcd");
  const PrefixHandle handle = HandleOf("ab");
  const auto tokens = Spell("cx");
  const auto before = Snapshot();
  const auto score =
      cache_.Score({.ns = kNoNamespace, .tokens = tokens, .after = handle});
  EXPECT_EQ(score->matched_tokens, 3 * kPageTokens);
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(HandleTest, KeepsNothingAlive) {
  Publish("ab");
  HandleOf("ab");
  EXPECT_EQ(cache_.Evict(kUsable), 2u);
}

}  // namespace
}  // namespace pando
