// Tests of the limits on what a session may hold at once.

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

class SessionLimitTest : public CacheFixture {
 protected:
  // The bytes of the tokens in a page.
  static constexpr uint64_t kPageBytes = kPageTokens * sizeof(Token);

  SessionLimitTest() {
    cache_.SetSessionLimits({.max_locks = 2, .max_reserved_pages = 5});
  }

  absl::StatusOr<MatchResult> Admit(std::string_view letters,
                                    uint64_t request_id = 0) {
    const std::vector<Token> tokens = Spell(letters);
    return cache_.Match({.session = session_,
                         .ns = kNoNamespace,
                         .tokens = tokens,
                         .lock = true,
                         .reserve_tokens = static_cast<uint32_t>(tokens.size()),
                         .request_id = RequestId(request_id)});
  }
  absl::StatusOr<LockResult> Lock() {
    return cache_.Lock({.session = session_, .ns = kNoNamespace, .tokens = {}});
  }
};

TEST_F(SessionLimitTest, OneLockTooManyIsRefusedAndChangesNothing) {
  const LockId first = Lock()->lock;
  ASSERT_EQ(Outcome(Lock()), "OK");
  EXPECT_EQ(Lock().status().message(),
            "the session has 2 locks; the limit is 2");
  EXPECT_EQ(Outcome(Admit("a")), "SESSION_LIMIT");
  EXPECT_EQ(cache_.Stats().locks, 2u);
  EXPECT_EQ(cache_.Stats().pages.reserved, 0u);
  EXPECT_EQ(Outcome(cache_.Unlock(session_, {{first}})), "OK");
  EXPECT_EQ(Outcome(Admit("a")), "OK");
}

TEST_F(SessionLimitTest, ReservedPagesOverTheLimitAreRefused) {
  Allocate(3);
  const auto refused =
      cache_.Allocate({.session = session_, .ns = kNoNamespace, .pages = 3});
  EXPECT_EQ(refused.status().message(),
            "3 pages are needed, but the session has reserved 3; "
            "the limit is 5");
  EXPECT_EQ(Outcome(Admit("abc")), "SESSION_LIMIT");
  EXPECT_EQ(cache_.Stats().locks, 0u);
  EXPECT_EQ(Outcome(Admit("ab")), "OK");
}

TEST_F(SessionLimitTest, AnAllocationWithAMinimumStaysWithinTheLimit) {
  Allocate(3);
  const auto some = cache_.Allocate(
      {.session = session_, .ns = kNoNamespace, .pages = 9, .min_pages = 1});
  ASSERT_EQ(Outcome(some), "OK");
  EXPECT_EQ(some->pages.size(), 2u);
  EXPECT_EQ(Outcome(cache_.Allocate({.session = session_,
                                     .ns = kNoNamespace,
                                     .pages = 9,
                                     .min_pages = 1})),
            "SESSION_LIMIT");
}

TEST_F(SessionLimitTest, OtherSessionsHaveTheirOwn) {
  Allocate(5);
  EXPECT_EQ(Allocate(OpenSession(), 5).size(), 5u);
}

TEST_F(SessionLimitTest, WhatIsPublishedIsNotReserved) {
  Publish("abcde");
  EXPECT_EQ(Allocate(5).size(), 5u);
}

TEST_F(SessionLimitTest, ARepeatIsAnsweredThoughTheLimitIsReached) {
  const auto first = Admit("abcde", 7);
  ASSERT_EQ(Outcome(first), "OK");
  ASSERT_EQ(Outcome(Lock()), "OK");
  EXPECT_EQ(Admit("abcde", 7)->lock, first->lock);
}

TEST_F(SessionLimitTest, MatchesWithoutLockAreNotLimited) {
  ASSERT_EQ(Outcome(Lock()), "OK");
  ASSERT_EQ(Outcome(Lock()), "OK");
  const std::vector<Token> tokens = Spell("a");
  EXPECT_EQ(Outcome(cache_.Match({.ns = kNoNamespace, .tokens = tokens})),
            "OK");
}

TEST_F(SessionLimitTest, ThePromptsThatLocksHoldAreLimited) {
  cache_.SetSessionLimits({.max_kept_bytes = 3 * kPageBytes});
  const auto first = Admit("ab");
  ASSERT_EQ(Outcome(first), "OK");
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(Admit("cd")), "SESSION_LIMIT");
  EXPECT_EQ(Snapshot(), before);
  ASSERT_EQ(Outcome(Admit("c")), "OK");
  EXPECT_EQ(cache_.Stats().kept_bytes, 3 * kPageBytes);
  // The lock holds the prompt until its release, even if the pages are freed.
  ASSERT_EQ(Outcome(cache_.Free(session_, first->reserved)), "OK");
  EXPECT_EQ(Outcome(Admit("d")), "SESSION_LIMIT");
  ASSERT_EQ(Outcome(Unlock(first->lock)), "OK");
  EXPECT_EQ(cache_.Stats().kept_bytes, kPageBytes);
  EXPECT_EQ(Outcome(Admit("de")), "OK");
}

TEST_F(SessionLimitTest, APromptThatWasInsertedToItsEndIsHeldNoMore) {
  const auto match = Admit("ab");
  const auto tokens = Spell("ab");
  ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = tokens,
                                   .pages = match->reserved,
                                   .anchor = match->lock,
                                   .lock_action = LockAction::kRelock})),
            "OK");
  EXPECT_EQ(cache_.Stats().kept_bytes, 0u);
  cache_.CloseSession(session_);
  EXPECT_EQ(cache_.Stats().kept_bytes, 0u);
}

TEST_F(SessionLimitTest, TheEndOfASessionEndsWhatItsLocksHold) {
  ASSERT_EQ(Outcome(Admit("abc")), "OK");
  EXPECT_EQ(cache_.Stats().kept_bytes, 3 * kPageBytes);
  cache_.CloseSession(session_);
  EXPECT_EQ(cache_.Stats().kept_bytes, 0u);
}

TEST_F(SessionLimitTest, WhatIsKeptElsewhereCountsInTheSameAccount) {
  cache_.SetSessionLimits({.max_kept_bytes = 3 * kPageBytes});
  {
    const auto kept = cache_.Keep(session_, 2 * kPageBytes);
    ASSERT_EQ(Outcome(kept), "OK");
    const auto before = Snapshot();
    EXPECT_EQ(Admit("ab").status().message(),
              "the call needs 32 bytes, and 32 are kept for the session; the "
              "limit is 48");
    EXPECT_EQ(Outcome(cache_.Keep(session_, 2 * kPageBytes)), "SESSION_LIMIT");
    EXPECT_EQ(Snapshot(), before);
    EXPECT_EQ(Outcome(cache_.Keep(OpenSession(), 2 * kPageBytes)), "OK");
    EXPECT_EQ(Outcome(cache_.Keep(SessionId(), 2 * kPageBytes)), "OK");
    EXPECT_EQ(Outcome(Admit("a")), "OK");
    EXPECT_EQ(cache_.Stats().kept_bytes, 3 * kPageBytes);
  }
  EXPECT_EQ(cache_.Stats().kept_bytes, kPageBytes);
}

TEST_F(SessionLimitTest, WhatIsKeptForASessionThatEndedCountsNoMore) {
  const auto kept = cache_.Keep(session_, 100);
  const auto for_none = cache_.Keep(SessionId(), 10);
  EXPECT_EQ(cache_.Stats().kept_bytes, 110u);
  cache_.CloseSession(session_);
  EXPECT_EQ(cache_.Stats().kept_bytes, 10u);
  EXPECT_EQ(Outcome(cache_.Keep(session_, 1)), "SESSION_LOST");
}

TEST_F(SessionLimitTest, StoredAnswersCountButAreNotRefused) {
  cache_.SetSessionLimits({.max_kept_bytes = 2 * kPageBytes});
  const auto match = Admit("ab", 7);
  ASSERT_EQ(Outcome(match), "OK");
  const uint64_t answer_bytes =
      Answers::kAnswerBytes + match->reserved.size() * sizeof(PageId);
  EXPECT_EQ(cache_.Stats().kept_bytes, 2 * kPageBytes + answer_bytes);
  EXPECT_EQ(Outcome(cache_.Unlock(session_, {{match->lock}}, RequestId(8))),
            "OK");
  EXPECT_EQ(cache_.Stats().kept_bytes, answer_bytes + Answers::kAnswerBytes);
  EXPECT_EQ(Outcome(Admit("a")), "SESSION_LIMIT");
}

TEST_F(SessionLimitTest, ALowerLimitTakesNothingAway) {
  Allocate(5);
  cache_.SetSessionLimits({.max_locks = 0, .max_reserved_pages = 1});
  EXPECT_EQ(cache_.Stats().pages.reserved, 5u);
  cache_.SetSessionLimits({});
  EXPECT_EQ(Allocate(8).size(), 8u);
}

}  // namespace
}  // namespace pando
