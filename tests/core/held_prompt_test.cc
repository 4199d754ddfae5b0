// Tests of the prompt that an admission stores with its lock. Later inserts
// take tokens from that prompt.

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;

class HeldPromptTest : public CacheFixture {
 protected:
  // Locks the cached part of the prompt and reserves pages for `room` tokens.
  MatchResult Admit(const std::vector<Token>& prompt, uint32_t room) {
    const auto match = cache_.Match({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = prompt,
                                     .lock = true,
                                     .reserve_tokens = room});
    EXPECT_EQ(Outcome(match), "OK");
    return match.value_or(MatchResult());
  }
  MatchResult Admit(std::string_view letters, uint32_t tail = 0) {
    const auto prompt = Spell(letters, tail);
    return Admit(prompt, static_cast<uint32_t>(prompt.size()));
  }

  // Inserts tokens of the held prompt, followed by `sent`.
  absl::StatusOr<InsertResult> InsertHeld(LockId lock, uint32_t prompt_tokens,
                                          const std::vector<PageId>& pages,
                                          LockAction action = LockAction::kKeep,
                                          const std::vector<Token>& sent = {}) {
    return cache_.Insert({.session = session_,
                          .ns = kNoNamespace,
                          .tokens = sent,
                          .pages = pages,
                          .anchor = lock,
                          .lock_action = action,
                          .prompt_tokens = prompt_tokens});
  }
};

TEST_F(HeldPromptTest, IsInsertedAsIfItsTokensWereSent) {
  const auto front = Publish("ab");
  const MatchResult match = Admit("abcd");
  const auto insert = InsertHeld(match.lock, 2 * kPageTokens, match.reserved,
                                 LockAction::kUnlock);
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->existing_tokens, 0u);
  EXPECT_EQ(PagesOf("abcd"), Concat(front, match.reserved));
  EXPECT_EQ(Counts().evictable, 4u);
  EXPECT_EQ(cache_.Stats().locks, 0u);
}

TEST_F(HeldPromptTest, IsFollowedByTheTokensThatWereSent) {
  const auto prompt = Spell("ab", 2);
  const std::vector<Token> generated = {11, 12, 13, 14, 15, 16};
  const auto all = Concat(prompt, generated);
  const MatchResult match = Admit(prompt, static_cast<uint32_t>(all.size()));
  ASSERT_EQ(Outcome(InsertHeld(match.lock, 10, match.reserved,
                               LockAction::kUnlock, generated)),
            "OK");
  const auto found =
      cache_.Match({.session = {}, .ns = kNoNamespace, .tokens = all});
  ASSERT_EQ(Outcome(found), "OK");
  EXPECT_EQ(found->pages, match.reserved);
}

TEST_F(HeldPromptTest, ThatEndsWithinAPageIsPublishedInWholePages) {
  const MatchResult match = Admit("ab", 3);
  const std::vector whole = {match.reserved[0], match.reserved[1]};
  EXPECT_EQ(Outcome(InsertHeld(match.lock, 11, match.reserved)),
            "INVALID_ALIGNMENT");
  ASSERT_EQ(Outcome(InsertHeld(match.lock, 11, whole)), "OK");
  EXPECT_EQ(PagesOf("ab"), whole);
  EXPECT_EQ(Counts().reserved, 1u);  // the page of the tail
}

TEST_F(HeldPromptTest, BeginsAfterACappedMatch) {
  const auto pages = Publish("ab");
  const auto prompt = Spell("ab");
  const auto match = cache_.Match({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = prompt,
                                   .max_tokens = 2 * kPageTokens - 1,
                                   .lock = true,
                                   .reserve_tokens = 2 * kPageTokens});
  ASSERT_EQ(Outcome(match), "OK");
  const auto insert = InsertHeld(match->lock, kPageTokens, match->reserved);
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_THAT(insert->canonical_pages, ElementsAre(pages[1]));
}

TEST_F(HeldPromptTest, OverlapsWithWhatAnotherPublishedMeanwhile) {
  const MatchResult match = Admit("abc");
  const auto theirs = Publish("ab");
  const auto insert = InsertHeld(match.lock, 3 * kPageTokens, match.reserved);
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->canonical_pages, theirs);
  EXPECT_EQ(insert->freed_duplicates, 2u);
  EXPECT_EQ(PagesOf("abc"), Concat(theirs, {match.reserved[2]}));
}

TEST_F(HeldPromptTest, AdvancesWithEachRelockOfAChunkedPrefill) {
  const MatchResult match = Admit("abcde");
  const auto& pages = match.reserved;
  ASSERT_EQ(Outcome(InsertHeld(match.lock, 2 * kPageTokens,
                               {pages[0], pages[1]}, LockAction::kRelock)),
            "OK");
  // The tokens beyond the last whole page stay for the next chunk.
  ASSERT_EQ(Outcome(InsertHeld(match.lock, kPageTokens + 3, {pages[2]},
                               LockAction::kRelock)),
            "OK");
  ASSERT_EQ(Outcome(InsertHeld(match.lock, 2 * kPageTokens,
                               {pages[3], pages[4]}, LockAction::kUnlock)),
            "OK");
  EXPECT_EQ(PagesOf("abcde"), pages);
}

TEST_F(HeldPromptTest, StaysWhereItIsWhenTheLockDoes) {
  const MatchResult match = Admit("ab");
  ASSERT_EQ(Outcome(InsertHeld(match.lock, kPageTokens, {match.reserved[0]})),
            "OK");
  ASSERT_EQ(Outcome(InsertAt(match.lock, "", {}, LockAction::kRelock)), "OK");
  ASSERT_EQ(Outcome(InsertHeld(match.lock, 2 * kPageTokens, match.reserved)),
            "OK");
  EXPECT_EQ(PagesOf("ab"), match.reserved);
}

TEST_F(HeldPromptTest, IsDroppedByARelockPastTokensThatWereSent) {
  const MatchResult match = Admit("abc");
  ASSERT_EQ(Outcome(InsertAt(match.lock, "a", {match.reserved[0]},
                             LockAction::kRelock)),
            "OK");
  EXPECT_EQ(Outcome(InsertHeld(match.lock, 1, {})), "INVALID_FIELD");
}

TEST_F(HeldPromptTest, IsDroppedByARelockIntoTokensThatFollowedIt) {
  const MatchResult match = Admit("abc");
  ASSERT_EQ(Outcome(InsertHeld(match.lock, kPageTokens - 1, {match.reserved[0]},
                               LockAction::kRelock, {9})),
            "OK");
  EXPECT_EQ(Outcome(InsertHeld(match.lock, 1, {})), "INVALID_FIELD");
}

TEST_F(HeldPromptTest, GivesNoMoreThanItHas) {
  const MatchResult match = Admit("ab", 1);
  EXPECT_EQ(Outcome(InsertHeld(match.lock, 10,
                               {match.reserved[0], match.reserved[1]})),
            "INVALID_FIELD");
  EXPECT_EQ(Outcome(InsertHeld(match.lock, 9,
                               {match.reserved[0], match.reserved[1]})),
            "OK");
}

TEST_F(HeldPromptTest, IsNoLongerThanTheReservedRoom) {
  const MatchResult match = Admit(Spell("abcd"), 2 * kPageTokens);
  EXPECT_EQ(
      Outcome(InsertHeld(match.lock, 2 * kPageTokens + 1, match.reserved)),
      "INVALID_FIELD");
  EXPECT_EQ(Outcome(InsertHeld(match.lock, 2 * kPageTokens, match.reserved)),
            "OK");
}

TEST_F(HeldPromptTest, GivesOnlyWhatARelockLeft) {
  const MatchResult match = Admit("ab");
  const auto& pages = match.reserved;
  ASSERT_EQ(Outcome(InsertHeld(match.lock, kPageTokens, {pages[0]},
                               LockAction::kRelock)),
            "OK");
  EXPECT_EQ(Outcome(InsertHeld(match.lock, kPageTokens + 1, {pages[1]})),
            "INVALID_FIELD");
}

TEST_F(HeldPromptTest, NeedsALock) {
  const MatchResult match = Admit("a");
  EXPECT_EQ(Outcome(InsertHeld(LockId(), kPageTokens, match.reserved)),
            "INVALID_FIELD");
}

TEST_F(HeldPromptTest, IsOnlyLeftByAnAdmission) {
  const auto pages = Allocate(1);
  for (const LockId lock : {Lock("a"), MatchAndLock("a", 0)->lock}) {
    EXPECT_EQ(Outcome(InsertHeld(lock, kPageTokens, pages)), "INVALID_FIELD");
  }
}

TEST_F(HeldPromptTest, OutlivesASplitOfTheNodeOfItsLock) {
  const auto front = Publish("ab");
  const MatchResult match = Admit("abcd");
  const LockId splits = Lock("a");
  ASSERT_EQ(Nodes(), 2u);
  ASSERT_EQ(Outcome(InsertHeld(match.lock, 2 * kPageTokens, match.reserved)),
            "OK");
  EXPECT_EQ(PagesOf("abcd"), Concat(front, match.reserved));
  EXPECT_EQ(Outcome(Unlock(splits)), "OK");
}

TEST_F(HeldPromptTest, GoesWithItsLock) {
  const MatchResult match = Admit("a");
  ASSERT_EQ(Outcome(Unlock(match.lock)), "OK");
  const LockId next = Lock("");  // takes the place of the released lock
  EXPECT_EQ(Outcome(InsertHeld(match.lock, kPageTokens, match.reserved)),
            "LOCK_UNKNOWN");
  EXPECT_EQ(Outcome(InsertHeld(next, kPageTokens, match.reserved)),
            "INVALID_FIELD");
}

TEST_F(HeldPromptTest, OfAnotherSessionCannotBeTaken) {
  const MatchResult match = Admit("a");
  const SessionId other = OpenSession();
  const auto theirs = Allocate(other, 1);
  EXPECT_EQ(Outcome(cache_.Insert({.session = other,
                                   .ns = kNoNamespace,
                                   .tokens = {},
                                   .pages = theirs,
                                   .anchor = match.lock,
                                   .prompt_tokens = kPageTokens})),
            "LOCK_UNKNOWN");
}

TEST_F(HeldPromptTest, IsUnchangedByAnInsertThatFails) {
  const MatchResult match = Admit("ab");
  const auto& pages = match.reserved;
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(InsertHeld(match.lock, 2 * kPageTokens,
                               {pages[0], kPaddingPage}, LockAction::kRelock)),
            "PAGE_OUT_OF_RANGE");
  EXPECT_EQ(Snapshot(), before);
  ASSERT_EQ(Outcome(InsertHeld(match.lock, 2 * kPageTokens, pages,
                               LockAction::kUnlock)),
            "OK");
  EXPECT_EQ(PagesOf("ab"), pages);
}

}  // namespace
}  // namespace pando
