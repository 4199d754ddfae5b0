// A call that is repeated with its request id gets the first answer and does
// nothing else.

#include <cstdint>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

class RequestIdTest : public CacheFixture {
 protected:
  static constexpr RequestId kId{7};

  absl::StatusOr<AllocateResult> AllocateAs(RequestId id, uint32_t pages) {
    return cache_.Allocate({.session = session_,
                            .ns = kNoNamespace,
                            .pages = pages,
                            .request_id = id});
  }
  absl::StatusOr<LockResult> LockAs(RequestId id, std::string_view letters) {
    const auto tokens = Spell(letters);
    return cache_.Lock({.session = session_,
                        .ns = kNoNamespace,
                        .tokens = tokens,
                        .request_id = id});
  }
  uint64_t Repeats() { return cache_.Stats().counters.repeated_requests; }
};

TEST_F(RequestIdTest, ARepeatedAdmissionReservesOnce) {
  Publish("ab");
  const auto tokens = Spell("abcd");
  const auto admit = [&] {
    return cache_.Match({.session = session_,
                         .ns = kNoNamespace,
                         .tokens = tokens,
                         .lock = true,
                         .reserve_tokens = 4 * kPageTokens,
                         .request_id = kId});
  };
  const auto first = admit();
  ASSERT_EQ(Outcome(first), "OK");
  cache_.Evict(kUsable);  // does not change kept answers
  const auto second = admit();
  EXPECT_EQ(second->matched_tokens, first->matched_tokens);
  EXPECT_EQ(second->pages, first->pages);
  EXPECT_EQ(second->lock, first->lock);
  EXPECT_EQ(second->reserved, first->reserved);
  EXPECT_EQ(second->handle, first->handle);
  EXPECT_FALSE(first->is_repeat);
  EXPECT_TRUE(second->is_repeat);
  EXPECT_EQ(Repeats(), 1u);
  EXPECT_EQ(Counts().reserved, 2u);
  EXPECT_EQ(cache_.Stats().locks, 1u);
}

TEST_F(RequestIdTest, WhileDrainingARepeatGetsItsFirstAnswer) {
  Publish("ab");
  const auto tokens = Spell("abc");
  const auto admit = [&](RequestId id) {
    return cache_.Match({.session = session_,
                         .ns = kNoNamespace,
                         .tokens = tokens,
                         .lock = true,
                         .reserve_tokens = 3 * kPageTokens,
                         .request_id = id});
  };
  const auto match = admit(RequestId(1));
  const auto lock = LockAs(RequestId(2), "ab");
  const auto pages = AllocateAs(RequestId(3), 2);
  cache_.BeginDrain();
  EXPECT_EQ(admit(RequestId(1))->lock, match->lock);
  EXPECT_EQ(LockAs(RequestId(2), "ab")->lock, lock->lock);
  EXPECT_EQ(AllocateAs(RequestId(3), 2)->pages, pages->pages);
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(admit(RequestId(4))), "DRAINING");
  EXPECT_EQ(Outcome(LockAs(RequestId(5), "ab")), "DRAINING");
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(RequestIdTest, WhileDrainingWhatWasAdmittedFinishes) {
  const auto match = MatchAndLock("ab", 2 * kPageTokens);
  const auto spare = Allocate(1);
  cache_.BeginDrain();
  Touch("ab");
  const auto more = AllocateAs(RequestId(1), 1);
  ASSERT_EQ(Outcome(more), "OK");
  EXPECT_EQ(Outcome(cache_.Free(session_, more->pages)), "OK");
  EXPECT_EQ(Outcome(InsertAt(match->lock, "ab", match->reserved,
                             LockAction::kUnlock)),
            "OK");
  EXPECT_EQ(Outcome(cache_.Free(session_, spare)), "OK");
  EXPECT_TRUE(cache_.IsIdle());
}

TEST_F(RequestIdTest, WhileDrainingASessionThatHoldsNothingGetsNoPages) {
  cache_.BeginDrain();
  EXPECT_EQ(Outcome(AllocateAs(RequestId(1), 1)), "DRAINING");
  EXPECT_TRUE(cache_.IsIdle());
}

TEST_F(RequestIdTest, WhileDrainingALockAloneIsEnoughForPages) {
  const auto match = MatchAndLock("ab", 0);
  cache_.BeginDrain();
  EXPECT_EQ(Outcome(AllocateAs(RequestId(1), 1)), "OK");
}

TEST_F(RequestIdTest, AnIdOfAnotherKindOfCallUnlocksNothing) {
  Publish("a");
  const auto lock = LockAs(kId, "a");
  EXPECT_EQ(Outcome(cache_.Unlock(session_, std::vector{lock->lock}, kId)),
            "REQUEST_ID_REUSED");
  EXPECT_EQ(cache_.Stats().locks, 1u);
}

TEST_F(RequestIdTest, ARepeatedInsertPublishesOnce) {
  const auto pages = Allocate(2);
  const auto tokens = Spell("ab");
  const auto insert = [&] {
    return cache_.Insert({.session = session_,
                          .ns = kNoNamespace,
                          .tokens = tokens,
                          .pages = pages,
                          .request_id = kId});
  };
  const auto first = insert();
  ASSERT_EQ(Outcome(first), "OK");
  const auto second = insert();
  ASSERT_EQ(Outcome(second), "OK");
  EXPECT_EQ(second->existing_tokens, 0u);
  EXPECT_EQ(second->handle, first->handle);
  EXPECT_FALSE(first->is_repeat);
  EXPECT_TRUE(second->is_repeat);
  EXPECT_EQ(cache_.Stats().counters.inserts, 1u);
}

TEST_F(RequestIdTest, ARepeatedFinalInsertIsAnsweredThoughItsLockIsGone) {
  const auto match = MatchAndLock("ab", 2 * kPageTokens);
  const auto tokens = Spell("ab");
  const auto finish = [&] {
    return cache_.Insert({.session = session_,
                          .ns = kNoNamespace,
                          .tokens = tokens,
                          .pages = match->reserved,
                          .anchor = match->lock,
                          .lock_action = LockAction::kUnlock,
                          .request_id = kId});
  };
  EXPECT_EQ(Outcome(finish()), "OK");
  EXPECT_EQ(Outcome(finish()), "OK");
  EXPECT_EQ(cache_.Stats().counters.locks_released, 1u);
}

TEST_F(RequestIdTest, ARepeatedLockIsTheSameLock) {
  Publish("a");
  const auto first = LockAs(kId, "a");
  EXPECT_EQ(LockAs(kId, "a")->lock, first->lock);
  EXPECT_EQ(cache_.Stats().locks, 1u);
}

TEST_F(RequestIdTest, ARepeatedUnlockIsNoError) {
  const std::vector<LockId> locks = {Lock("a")};
  EXPECT_EQ(Outcome(cache_.Unlock(session_, locks, kId)), "OK");
  EXPECT_EQ(Outcome(cache_.Unlock(session_, locks, kId)), "OK");
  EXPECT_EQ(Outcome(cache_.Unlock(session_, locks, RequestId(8))),
            "LOCK_UNKNOWN");
}

TEST_F(RequestIdTest, ARepeatedAllocationGivesTheSamePages) {
  const auto first = AllocateAs(kId, 3);
  EXPECT_EQ(AllocateAs(kId, 3)->pages, first->pages);
  EXPECT_EQ(Counts().reserved, 3u);
}

TEST_F(RequestIdTest, ARepeatedFreeFreesNothingThatWasGivenOutSince) {
  const auto pages = Allocate(kUsable);
  EXPECT_EQ(Outcome(cache_.Free(session_, pages, kId)), "OK");
  Allocate(kUsable);  // gives out the same pages again
  EXPECT_EQ(Outcome(cache_.Free(session_, pages, kId)), "OK");
  EXPECT_EQ(Counts().reserved, kUsable);
}

TEST_F(RequestIdTest, OfAnotherKindOfCallIsAnError) {
  const std::vector<LockId> locks = {Lock("a")};
  const auto pages = Allocate(1);
  ASSERT_EQ(Outcome(cache_.Unlock(session_, locks, kId)), "OK");
  EXPECT_EQ(Outcome(cache_.Free(session_, pages, kId)), "REQUEST_ID_REUSED");
  EXPECT_EQ(Outcome(AllocateAs(kId, 1)), "REQUEST_ID_REUSED");
  EXPECT_EQ(Outcome(LockAs(kId, "a")), "REQUEST_ID_REUSED");
  const auto match = cache_.Match({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = {},
                                   .lock = true,
                                   .request_id = kId});
  EXPECT_EQ(Outcome(match), "REQUEST_ID_REUSED");
  const auto insert = cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = {},
                                     .pages = {},
                                     .request_id = kId});
  EXPECT_EQ(Outcome(insert), "REQUEST_ID_REUSED");
  EXPECT_EQ(Counts().reserved, 1u);
}

TEST_F(RequestIdTest, OfACallThatFailedIsFreeToUse) {
  EXPECT_EQ(Outcome(AllocateAs(kId, kUsable + 1)), "POOL_EXHAUSTED");
  EXPECT_EQ(Outcome(AllocateAs(kId, 2)), "OK");
  EXPECT_EQ(Counts().reserved, 2u);
}

TEST_F(RequestIdTest, IsTheSessionsOwn) {
  const SessionId other = OpenSession();
  const auto first = AllocateAs(kId, 1);
  const auto second = cache_.Allocate(
      {.session = other, .ns = kNoNamespace, .pages = 1, .request_id = kId});
  EXPECT_NE(first->pages, second->pages);
}

TEST_F(RequestIdTest, TheLast256AnswersAreKept) {
  const auto first = AllocateAs(RequestId(1), 1);
  ASSERT_EQ(Outcome(cache_.Free(session_, first->pages)), "OK");
  for (uint64_t id = 2; id <= 256; ++id) {
    ASSERT_EQ(Outcome(AllocateAs(RequestId(id), 0)), "OK");
  }
  EXPECT_EQ(AllocateAs(RequestId(1), 1)->pages, first->pages);
  EXPECT_EQ(Counts().reserved, 0u);
  ASSERT_EQ(Outcome(AllocateAs(RequestId(257), 0)), "OK");
  ASSERT_EQ(Outcome(AllocateAs(RequestId(1), 1)), "OK");  // no longer kept
  EXPECT_EQ(Counts().reserved, 1u);
}

TEST_F(RequestIdTest, AnswersOfMoreThan262144PageIdsAreNotKept) {
  constexpr uint32_t kPages = 1 << 17;
  PrefixCache cache({1, 3 * kPages + 1});
  cache.OpenSession(session_, "large");
  const auto allocate = [&](uint64_t id) {
    return cache
        .Allocate({.session = session_,
                   .ns = kNoNamespace,
                   .pages = kPages,
                   .request_id = RequestId(id)})
        ->pages;
  };
  const auto first = allocate(1);
  const auto second = allocate(2);
  EXPECT_EQ(allocate(1), first);
  allocate(3);
  EXPECT_EQ(allocate(2), second);
  EXPECT_EQ(Outcome(cache.Allocate({.session = session_,
                                    .ns = kNoNamespace,
                                    .pages = kPages,
                                    .request_id = RequestId(1)})),
            "POOL_EXHAUSTED");
}

TEST_F(RequestIdTest, TheLastAnswerIsKeptHoweverLarge) {
  constexpr uint32_t kPages = (1 << 18) + 1;
  PrefixCache cache({1, kPages + 1});
  cache.OpenSession(session_, "large");
  const auto allocate = [&] {
    return cache.Allocate({.session = session_,
                           .ns = kNoNamespace,
                           .pages = kPages,
                           .request_id = kId});
  };
  const auto first = allocate();
  ASSERT_EQ(Outcome(first), "OK");
  const auto second = allocate();
  ASSERT_EQ(Outcome(second), "OK");
  EXPECT_EQ(second->pages, first->pages);
  EXPECT_FALSE(first->is_repeat);
  EXPECT_TRUE(second->is_repeat);
}

TEST_F(RequestIdTest, OfAMatchNeedsALock) {
  const auto match = cache_.Match({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = {},
                                   .request_id = kId});
  EXPECT_EQ(Outcome(match), "INVALID_FIELD");
}

TEST_F(RequestIdTest, OfAMatchThatWaitsIsNotKept) {
  ASSERT_EQ(Outcome(MatchAndLock("ab", 2 * kPageTokens)), "OK");
  const auto tokens = Spell("ab");
  const auto admit = [&] {
    return cache_.Match({.session = session_,
                         .ns = kNoNamespace,
                         .tokens = tokens,
                         .lock = true,
                         .wait = true,
                         .request_id = kId});
  };
  const auto wait = admit()->wait;
  EXPECT_NE(wait, WaitId());
  EXPECT_TRUE(cache_.CancelWait(wait));
  EXPECT_NE(admit()->wait, wait);
}

}  // namespace
}  // namespace pando
