// Tests of pages that one worker computes while other workers wait for them.

#include <string_view>
#include <utility>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr auto kPublished = PendingOutcome::kPublished;
constexpr auto kGivenUp = PendingOutcome::kGivenUp;
constexpr auto kOwnerLost = PendingOutcome::kOwnerLost;

// A test with one session that owns computed pages and another that waits.
class SingleFlightTest : public testing::Test {
 protected:
  static constexpr uint32_t kPageTokens = 4;

  SingleFlightTest() {
    cache_.OpenSession(owner_, "owner");
    cache_.OpenSession(other_, "other");
  }
  void TearDown() override { EXPECT_THAT(cache_.CheckInvariants(), IsEmpty()); }

  static std::vector<Token> Spell(std::string_view letters) {
    return SpellTokens(letters, kPageTokens);
  }
  MatchResult Admit(SessionId session, std::string_view letters,
                    bool wait = false) {
    const auto tokens = Spell(letters);
    const auto match =
        cache_.Match({.session = session,
                      .ns = kNoNamespace,
                      .tokens = tokens,
                      .lock = true,
                      .reserve_tokens = static_cast<uint32_t>(tokens.size()),
                      .wait = wait});
    EXPECT_EQ(Outcome(match), "OK");
    return *match;
  }
  WaitId Wait(std::string_view letters) {
    return Admit(other_, letters, true).wait;
  }
  // Publishes the first pages of an admission, with `lock_action` for its lock.
  void Publish(SessionId session, const MatchResult& admission,
               std::string_view letters, LockAction action) {
    const auto tokens = Spell(letters);
    EXPECT_EQ(Outcome(cache_.Insert(
                  {.session = session,
                   .ns = kNoNamespace,
                   .tokens = tokens,
                   .pages = std::span(admission.reserved).first(letters.size()),
                   .anchor = admission.lock,
                   .lock_action = action})),
              "OK");
  }
  bool IsPending(std::string_view letters) {
    const auto tokens = Spell(letters);
    return cache_.Score({.ns = kNoNamespace, .tokens = tokens})->is_pending;
  }

  const SessionId owner_{1};
  const SessionId other_{2};
  std::vector<std::pair<WaitId, PendingOutcome>> over_;
  PrefixCache cache_{
      {.page_tokens = kPageTokens,
       .capacity_pages = 32,
       .on_wait_over = [this](WaitId wait, PendingOutcome outcome) {
         over_.emplace_back(wait, outcome);
       }}};
};

TEST_F(SingleFlightTest, AnAdmissionMarksThePageAfterItsMatch) {
  EXPECT_FALSE(IsPending("abc"));
  Admit(owner_, "abc");
  EXPECT_TRUE(IsPending("abc"));
  EXPECT_TRUE(IsPending("ax"));  // "ax" has the same first page
  EXPECT_FALSE(IsPending("xbc"));
}

TEST_F(SingleFlightTest, AMatchThatWaitsTakesNothing) {
  Admit(owner_, "abc");
  const PageCounts before = cache_.Stats().pages;
  const MatchResult match = Admit(other_, "abc", true);
  EXPECT_NE(match.wait, WaitId());
  EXPECT_TRUE(match.is_pending);
  EXPECT_EQ(match.lock, LockId());
  EXPECT_THAT(match.reserved, IsEmpty());
  EXPECT_EQ(cache_.Stats().locks, 1u);
  EXPECT_EQ(cache_.Stats().pages.reserved, before.reserved);
  EXPECT_EQ(cache_.Stats().waits, 1u);
}

TEST_F(SingleFlightTest, AMatchThatDoesNotWaitIsToldAndServed) {
  Admit(owner_, "abc");
  const MatchResult match = Admit(other_, "abc");
  EXPECT_TRUE(match.is_pending);
  EXPECT_EQ(match.wait, WaitId());
  EXPECT_EQ(match.reserved.size(), 3u);
}

TEST_F(SingleFlightTest, WhatNobodyComputesIsNotWaitedFor) {
  Admit(owner_, "abc");
  const MatchResult match = Admit(other_, "xyz", true);
  EXPECT_FALSE(match.is_pending);
  EXPECT_EQ(match.wait, WaitId());
  EXPECT_EQ(match.reserved.size(), 3u);
}

TEST_F(SingleFlightTest, PublishingThePageElsewhereGivesItUp) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  Publish(owner_, admission, "x", LockAction::kKeep);
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kGivenUp)));
  EXPECT_FALSE(IsPending("abc"));
}

TEST_F(SingleFlightTest, FreeingThePageAsADuplicateGivesItUp) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  const MatchResult others = Admit(other_, "x");
  Publish(other_, others, "x", LockAction::kUnlock);
  Publish(owner_, admission, "x", LockAction::kKeep);
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kGivenUp)));
}

TEST_F(SingleFlightTest, ADuplicateThatIsKeptIsStillBeingComputed) {
  const MatchResult admission = Admit(owner_, "abc");
  Wait("abc");
  const MatchResult others = Admit(other_, "x");
  Publish(other_, others, "x", LockAction::kUnlock);
  const auto tokens = Spell("x");
  EXPECT_EQ(
      Outcome(cache_.Insert({.session = owner_,
                             .ns = kNoNamespace,
                             .tokens = tokens,
                             .pages = std::span(admission.reserved).first(1),
                             .keep_duplicates = true})),
      "OK");
  EXPECT_THAT(over_, IsEmpty());
}

TEST_F(SingleFlightTest, PublicationEndsTheWait) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  EXPECT_THAT(over_, IsEmpty());
  Publish(owner_, admission, "abc", LockAction::kUnlock);
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kPublished)));
  EXPECT_EQ(Admit(other_, "abc", true).matched_tokens, 3 * kPageTokens);
  EXPECT_EQ(cache_.Stats().counters.pending_waits_published, 1u);
}

TEST_F(SingleFlightTest, PublicationByAnotherEndsTheWaitToo) {
  Admit(owner_, "abc");
  const MatchResult second = Admit(other_, "abc");
  const WaitId wait = Wait("abd");
  Publish(other_, second, "abc", LockAction::kUnlock);
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kPublished)));
  EXPECT_FALSE(IsPending("abc"));
}

TEST_F(SingleFlightTest, AllWaitsForAPageEndAtOnceInOrderOfArrival) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId first = Wait("abc");
  const WaitId second = Wait("ab");
  const WaitId third = Wait("axyz");
  Publish(owner_, admission, "a", LockAction::kKeep);
  EXPECT_THAT(over_,
              ElementsAre(Pair(first, kPublished), Pair(second, kPublished),
                          Pair(third, kPublished)));
}

TEST_F(SingleFlightTest, AnUnlockGivesUp) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  EXPECT_EQ(Outcome(cache_.Unlock(owner_, std::vector{admission.lock})), "OK");
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kGivenUp)));
  EXPECT_EQ(cache_.Stats().counters.pending_waits_given_up, 1u);
  // The next session that asks for the page computes it.
  EXPECT_EQ(Admit(other_, "abc", true).reserved.size(), 3u);
  EXPECT_TRUE(IsPending("abc"));
}

TEST_F(SingleFlightTest, FreeingItsPageGivesUp) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  const auto free = [&](size_t page) {
    return cache_.Free(owner_, std::span(admission.reserved).subspan(page, 1));
  };
  EXPECT_EQ(Outcome(free(2)), "OK");
  EXPECT_THAT(over_, IsEmpty());  // a later page, not the marked one
  EXPECT_EQ(Outcome(free(0)), "OK");
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kGivenUp)));
}

TEST_F(SingleFlightTest, TheEndOfTheOwnersSessionEndsTheWait) {
  Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  cache_.CloseSession(owner_);
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kOwnerLost)));
}

TEST_F(SingleFlightTest, TheDeathOfTheOwnerEndsTheWait) {
  Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  ASSERT_TRUE(cache_.AttachSession(owner_, WriterId(1)).ok());
  cache_.WriterGone(WriterId(1));
  EXPECT_THAT(over_, IsEmpty());  // its stream may still be open
  cache_.SuspendSession(owner_, absl::InfiniteFuture());
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kOwnerLost)));
}

TEST_F(SingleFlightTest, TheLossOfTheOwnerAfterItsGraceEndsTheWait) {
  Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  cache_.SuspendSession(owner_, absl::UnixEpoch() + absl::Seconds(2));
  cache_.ExpireSessions(absl::UnixEpoch() + absl::Seconds(1), absl::Seconds(9));
  EXPECT_THAT(over_, IsEmpty());
  cache_.ExpireSessions(absl::UnixEpoch() + absl::Seconds(2), absl::Seconds(9));
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kOwnerLost)));
}

TEST_F(SingleFlightTest, TheEndOfTheWaitersSessionEndsItsWaits) {
  Admit(owner_, "abc");
  Wait("abc");
  cache_.CloseSession(other_);
  EXPECT_EQ(cache_.Stats().waits, 0u);
  EXPECT_EQ(cache_.Stats().counters.pending_waits_given_up, 1u);
  EXPECT_TRUE(IsPending("abc"));
}

TEST_F(SingleFlightTest, ACancelledWaitIsNeverToldOf) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  EXPECT_TRUE(cache_.CancelWait(wait));
  EXPECT_FALSE(cache_.CancelWait(wait));
  Publish(owner_, admission, "abc", LockAction::kUnlock);
  EXPECT_THAT(over_, IsEmpty());
  EXPECT_EQ(cache_.Stats().counters.pending_waits_timed_out, 1u);
}

TEST_F(SingleFlightTest, AWaitThatIsOverCannotBeCancelled) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  Publish(owner_, admission, "abc", LockAction::kUnlock);
  EXPECT_FALSE(cache_.CancelWait(wait));
}

TEST_F(SingleFlightTest, ARelockMovesTheMarkToTheNextPageOfTheHeldPrompt) {
  const MatchResult admission = Admit(owner_, "abc");
  EXPECT_EQ(
      Outcome(cache_.Insert({.session = owner_,
                             .ns = kNoNamespace,
                             .tokens = {},
                             .pages = std::span(admission.reserved).first(1),
                             .anchor = admission.lock,
                             .lock_action = LockAction::kRelock,
                             .prompt_tokens = kPageTokens})),
      "OK");
  EXPECT_FALSE(IsPending("ax"));
  EXPECT_TRUE(IsPending("ab"));
  const MatchResult match = Admit(other_, "abc", true);
  EXPECT_NE(match.wait, WaitId());
}

TEST_F(SingleFlightTest, ARelockAnotherWayGivesUp) {
  const MatchResult admission = Admit(owner_, "abc");
  const WaitId wait = Wait("abc");
  Publish(owner_, admission, "x", LockAction::kRelock);
  EXPECT_THAT(over_, ElementsAre(Pair(wait, kGivenUp)));
}

TEST_F(SingleFlightTest, ARelockOfNothingChangesNothing) {
  const MatchResult admission = Admit(owner_, "abc");
  Wait("abc");
  Publish(owner_, admission, "", LockAction::kRelock);
  EXPECT_THAT(over_, IsEmpty());
  EXPECT_TRUE(IsPending("abc"));
}

TEST_F(SingleFlightTest, ASecondAdmissionOfThePageHasNoMark) {
  const MatchResult first = Admit(owner_, "abc");
  const MatchResult second = Admit(other_, "abc");
  EXPECT_EQ(Outcome(cache_.Unlock(other_, std::vector{second.lock})), "OK");
  EXPECT_TRUE(IsPending("abc"));
  EXPECT_EQ(Outcome(cache_.Unlock(owner_, std::vector{first.lock})), "OK");
  EXPECT_FALSE(IsPending("abc"));
}

TEST_F(SingleFlightTest, ALockOrAReservationAloneMarksNothing) {
  const auto tokens = Spell("abc");
  ASSERT_EQ(Outcome(cache_.Match({.session = owner_,
                                  .ns = kNoNamespace,
                                  .tokens = tokens,
                                  .lock = true})),
            "OK");
  EXPECT_FALSE(IsPending("abc"));
}

TEST_F(SingleFlightTest, LessThanAPageIsNotMarked) {
  std::vector<Token> tokens = Spell("a");
  tokens.pop_back();
  ASSERT_EQ(Outcome(cache_.Match({.session = owner_,
                                  .ns = kNoNamespace,
                                  .tokens = tokens,
                                  .lock = true,
                                  .reserve_tokens = kPageTokens})),
            "OK");
  EXPECT_FALSE(IsPending("a"));
}

TEST_F(SingleFlightTest, ACapBeforeThePageIsNoReasonToWait) {
  Admit(owner_, "abc");
  const auto tokens = Spell("abc");
  const auto match = cache_.Match({.session = other_,
                                   .ns = kNoNamespace,
                                   .tokens = tokens,
                                   .max_tokens = kPageTokens - 1,
                                   .lock = true,
                                   .wait = true});
  EXPECT_FALSE(match->is_pending);
  EXPECT_NE(match->lock, LockId());
}

// An admission that waits holds no locks or pages, so both sessions go on.
TEST_F(SingleFlightTest, TwoThatWaitForEachOtherBothGoOn) {
  const MatchResult a = Admit(owner_, "ab");
  const MatchResult x = Admit(other_, "xy");
  const WaitId owner_waits = Admit(owner_, "xy", true).wait;
  const WaitId other_waits = Admit(other_, "ab", true).wait;
  Publish(owner_, a, "ab", LockAction::kUnlock);
  Publish(other_, x, "xy", LockAction::kUnlock);
  EXPECT_THAT(over_, ElementsAre(Pair(other_waits, kPublished),
                                 Pair(owner_waits, kPublished)));
}

TEST_F(SingleFlightTest, TheMarkOutlivesASplitAtItsPlace) {
  const MatchResult front = Admit(owner_, "abcd");
  Publish(owner_, front, "abcd", LockAction::kUnlock);
  Admit(owner_, "abx");  // ends inside the node "abcd"
  EXPECT_TRUE(IsPending("abx"));
  Admit(other_, "ay");
  EXPECT_TRUE(IsPending("abx"));
  EXPECT_TRUE(IsPending("ay"));
}

TEST_F(SingleFlightTest, NWorkersThatAskForOneColdPromptComputeItOnce) {
  constexpr int kWorkers = 8;
  const MatchResult admission = Admit(owner_, "abcdef");
  for (int i = 0; i < kWorkers; ++i) EXPECT_NE(Wait("abcdef"), WaitId());
  Publish(owner_, admission, "abcdef", LockAction::kUnlock);
  EXPECT_EQ(over_.size(), size_t{kWorkers});
  for (int i = 0; i < kWorkers; ++i) {
    const MatchResult match = Admit(other_, "abcdef", true);
    EXPECT_EQ(match.matched_tokens, 6 * kPageTokens);
    EXPECT_THAT(match.reserved, IsEmpty());
  }
  EXPECT_EQ(cache_.Stats().counters.allocated_pages, 6u);
}

TEST_F(SingleFlightTest, AHandledMatchWaitsForTheSamePage) {
  const MatchResult front = Admit(owner_, "ab");
  Publish(owner_, front, "ab", LockAction::kUnlock);
  const PrefixHandle handle = Admit(other_, "ab").handle;
  Admit(owner_, "abc");
  const auto tokens = Spell("c");
  const auto match = cache_.Match({.session = other_,
                                   .ns = kNoNamespace,
                                   .tokens = tokens,
                                   .lock = true,
                                   .after = handle,
                                   .wait = true});
  EXPECT_NE(match->wait, WaitId());
}

TEST_F(SingleFlightTest, AWaitNeedsALock) {
  const auto match =
      cache_.Match({.ns = kNoNamespace, .tokens = {}, .wait = true});
  EXPECT_EQ(Outcome(match), "INVALID_FIELD");
}

}  // namespace
}  // namespace pando
